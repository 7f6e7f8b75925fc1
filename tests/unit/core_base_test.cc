// Portable exp and log against the C library in extended precision; the digest against known
// answers; numbers that are none or too large are found wherever they stand.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "core/base/digest.h"
#include "core/base/finite.h"
#include "core/base/philox.h"
#include "core/base/portable_math.h"

namespace kernelstream {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kTiny = std::numeric_limits<double>::denorm_min();

double Ulp(double x) { return std::nextafter(std::abs(x), kInf) - std::abs(x); }

double UlpError(double got, long double exact) {
  const double rounded = static_cast<double>(exact);
  if (!std::isfinite(rounded) || !std::isfinite(got)) return got == rounded ? 0 : kInf;
  return static_cast<double>(std::abs(got - exact) / Ulp(rounded));
}

// Uniform on (low, high).
double Draw(uint32_t i, double low, double high) {
  const PhiloxBlock words = Philox4x32({i}, {11, 12});
  return low + (high - low) * UniformDouble(words[0], words[1]);
}

constexpr uint32_t kDraws = 300000;

template <class Portable, class Exact, class Argument>
double WorstUlps(Portable portable, Exact exact, Argument argument) {
  double worst = 0;
  for (uint32_t i = 0; i < kDraws; ++i) {
    const double x = argument(i);
    const double error = UlpError(portable(x), exact(static_cast<long double>(x)));
    if (error > worst) worst = error;
  }
  return worst;
}

constexpr auto kExp = [](long double x) { return std::exp(x); };
constexpr auto kLog = [](long double x) { return std::log(x); };
constexpr auto kLog1p = [](long double x) { return std::log1p(x); };

TEST(PortableExp, IsWithinOneUlp) {
  const auto worst = [](double low, double high) {
    const double ulps =
        WorstUlps(PortableExp, kExp, [=](uint32_t i) { return Draw(i, low, high); });
    std::printf("exp on (%g, %g): %.3f ulp\n", low, high, ulps);
    return ulps;
  };
  EXPECT_LE(worst(-1, 1), 1);
  EXPECT_LE(worst(-1e-8, 1e-8), 1);
  EXPECT_LE(worst(-30, 30), 1);
  EXPECT_LE(worst(-708, 709.78), 1);
  EXPECT_LE(worst(-745.1, -708), 2);  // subnormal results
}

TEST(PortableLog, IsWithinOneUlp) {
  const auto worst = [](const char* where, auto argument) {
    const double ulps = WorstUlps(PortableLog, kLog, argument);
    std::printf("log %s: %.3f ulp\n", where, ulps);
    return ulps;
  };
  EXPECT_LE(worst("on (0.5, 2)", [](uint32_t i) { return Draw(i, 0.5, 2); }), 1);
  EXPECT_LE(worst("around 1", [](uint32_t i) { return 1 + Draw(i, -1e-6, 1e-6); }), 1);
  EXPECT_LE(worst("of 2^(-1074, 1024)", [](uint32_t i) { return std::exp2(Draw(i, -1074, 1024)); }),
            1);
}

TEST(PortableLog1p, IsWithinOneUlp) {
  const auto worst = [](const char* where, auto argument) {
    const double ulps = WorstUlps(PortableLog1p, kLog1p, argument);
    std::printf("log1p %s: %.3f ulp\n", where, ulps);
    return ulps;
  };
  EXPECT_LE(worst("on (-0.999, 3)", [](uint32_t i) { return Draw(i, -0.999, 3); }), 1);
  EXPECT_LE(worst("of 2^(-1074, 1024)", [](uint32_t i) { return std::exp2(Draw(i, -1074, 1024)); }),
            1);
  EXPECT_LE(worst("of -2^(-1074, 0)", [](uint32_t i) { return -std::exp2(Draw(i, -1074, 0)); }), 1);
}

TEST(PortableSoftplus, IsWithinThreeUlpAndNeverOverflows) {
  constexpr auto softplus = [](long double x) {
    return std::max(0.0L, x) + std::log1p(std::exp(-std::abs(x)));
  };
  for (const double width : {1e-6, 1.0, 40.0, 700.0}) {
    const double ulps =
        WorstUlps(PortableSoftplus, softplus, [=](uint32_t i) { return Draw(i, -width, width); });
    std::printf("softplus on +-%g: %.3f ulp\n", width, ulps);
    EXPECT_LE(ulps, 3) << width;
  }
  EXPECT_EQ(PortableSoftplus(1e300), 1e300);
  EXPECT_EQ(PortableSoftplus(-1e300), 0);
}

TEST(PortableMath, HandlesTheEndsOfTheRange) {
  EXPECT_EQ(PortableExp(0.0), 1);
  EXPECT_EQ(PortableExp(-0.0), 1);
  EXPECT_EQ(PortableExp(kTiny), 1);
  EXPECT_EQ(PortableExp(kInf), kInf);
  EXPECT_EQ(PortableExp(-kInf), 0);
  EXPECT_EQ(PortableExp(709.79), kInf);
  EXPECT_EQ(PortableExp(1e300), kInf);
  EXPECT_EQ(PortableExp(-1e300), 0);
  EXPECT_EQ(PortableExp(-745.2), 0);
  EXPECT_EQ(PortableExp(-745.1), kTiny);
  EXPECT_TRUE(std::isfinite(PortableExp(0x1.62e42fefa39efp+9)));
  EXPECT_EQ(PortableExp(0x1.62e42fefa39f0p+9), kInf);
  EXPECT_TRUE(std::isnan(PortableExp(kNan)));

  EXPECT_EQ(PortableLog(1.0), 0);
  EXPECT_EQ(PortableLog(0.0), -kInf);
  EXPECT_EQ(PortableLog(-0.0), -kInf);
  EXPECT_EQ(PortableLog(kInf), kInf);
  EXPECT_NEAR(PortableLog(kTiny), -744.4400719213812, 1e-12);
  EXPECT_TRUE(std::isnan(PortableLog(-1.0)));
  EXPECT_TRUE(std::isnan(PortableLog(-kInf)));
  EXPECT_TRUE(std::isnan(PortableLog(kNan)));

  EXPECT_EQ(PortableLog1p(0.0), 0);
  EXPECT_TRUE(std::signbit(PortableLog1p(-0.0)));
  EXPECT_EQ(PortableLog1p(kTiny), kTiny);
  EXPECT_EQ(PortableLog1p(-1.0), -kInf);
  EXPECT_EQ(PortableLog1p(kInf), kInf);
  EXPECT_TRUE(std::isnan(PortableLog1p(-1.5)));
  EXPECT_TRUE(std::isnan(PortableLog1p(kNan)));
}

TEST(PortableTanPi, IsWithinThreeUlps) {
  for (int i = -1000; i <= 1000; ++i) {
    const double x = i * 0.00025, expected = std::tan(std::acos(-1.0) * x);
    EXPECT_NEAR(PortableTanPi(x), expected, 0x1p-51 * std::abs(expected) + 0x1p-70) << x;
  }
}

TEST(PortableAtan2, IsWithinThreeUlps) {
  for (int i = -300; i <= 300; ++i) {
    const double t = std::exp(i * 0.1), expected = std::atan(t);
    EXPECT_NEAR(PortableAtan2(t, 1), expected, 3 * 0x1p-53 * expected) << t;
    EXPECT_NEAR(PortableAtan2(3 * t, 3), expected, 4 * 0x1p-53 * expected) << t;
  }
  EXPECT_EQ(PortableAtan2(0, 0), 0);
  EXPECT_EQ(PortableAtan2(0, 2), 0);
  EXPECT_EQ(PortableAtan2(2, 0), std::acos(0.0));
}

TEST(PortableLogGamma, StaysWithinItsBound) {
  for (int i = -400; i <= 700; ++i) {
    const double x = std::exp(i * 0.01), expected = std::lgamma(x);
    EXPECT_NEAR(PortableLogGamma(x), expected, 2e-14 * std::max(1.0, std::abs(expected))) << x;
  }
}

TEST(PortableMath, HasTheSameBitsEverywhere) {
  Digest128 digest;
  for (uint32_t i = 0; i < 10000; ++i) {
    digest.AddDouble(PortableExp(Draw(i, -740, 709)));
    digest.AddDouble(PortableLog(Draw(i, 0, 10)));
    digest.AddDouble(PortableLog1p(Draw(i, -1, 10)));
  }
  EXPECT_EQ(DigestHex(digest.Finish()), "5459392373105cbe9a288b18ba270481");
}

TEST(Digest128, OfNothingIsTheKnownAnswer) {
  EXPECT_EQ(DigestHex(Digest128().Finish()), "99aa06d3014798d86001c324468d497f");
}

TEST(Digest128, DoesNotDependOnHowTheBytesAreCut) {
  std::string bytes;
  for (int i = 0; i < 5000; ++i) bytes += static_cast<char>(i * 7);
  Digest128 whole, cut;
  whole.Add(bytes.data(), bytes.size());
  for (size_t at = 0, size = 0; at < bytes.size(); at += size, size = (size + 3) % 301) {
    size = std::min(size, bytes.size() - at);
    cut.Add(bytes.data() + at, size);
  }
  EXPECT_EQ(whole.Finish(), cut.Finish());
  cut.Add("x", 1);
  EXPECT_NE(whole.Finish(), cut.Finish());
}

TEST(Digest128, TakesNumbersLeastSignificantByteFirst) {
  Digest128 number, bytes;
  number.AddU64(0x0807060504030201u);
  bytes.Add("\x01\x02\x03\x04\x05\x06\x07\x08", 8);
  EXPECT_EQ(number.Finish(), bytes.Finish());

  Digest128 plus, minus;
  plus.AddDouble(0.0);
  minus.AddDouble(-0.0);
  EXPECT_NE(plus.Finish(), minus.Finish());
}

TEST(Finite, OneBadValueIsFoundAtEveryPlace) {
  constexpr float kLimit = 1e30f;
  const float above = std::nextafter(kLimit, std::numeric_limits<float>::infinity());
  const std::vector<float> good = {0.0f, -0.0f, kLimit, -kLimit, 1e-45f, -1e-45f, 1.0f};
  const auto infinity = std::numeric_limits<float>::infinity();
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  for (size_t size = 0; size <= 70; ++size) {
    std::vector<float> values(size);
    for (size_t i = 0; i < size; ++i) values[i] = good[i % good.size()];
    ASSERT_TRUE(AllWithin(values, kLimit)) << size;
    ASSERT_TRUE(AllFinite(values)) << size;
    for (size_t i = 0; i < size; ++i) {
      const float before = values[i];
      for (const float bad : {above, -above, infinity, -infinity, nan, -nan}) {
        values[i] = bad;
        ASSERT_FALSE(AllWithin(values, kLimit)) << bad << " at " << i << " of " << size;
        ASSERT_EQ(AllFinite(values), std::isfinite(bad)) << bad << " at " << i << " of " << size;
      }
      values[i] = before;
    }
    std::vector<double> doubles(size, -1e308);
    ASSERT_TRUE(AllFinite(doubles)) << size;
    for (double& value : doubles) {
      for (const double bad : {kInf, -kInf, kNan, -kNan}) {
        value = bad;
        ASSERT_FALSE(AllFinite(doubles)) << bad << " of " << size;
      }
      value = kTiny;
    }
  }
}

}  // namespace
}  // namespace kernelstream

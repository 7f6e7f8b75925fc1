#include "core/base/quantile.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <numbers>

#include "core/base/portable_math.h"

namespace kernelstream {
namespace {

struct ChebyshevPiece {
  double from, to;
  double terms[22];
};

#include "core/base/quantile_tables.inc"

// Sum of the terms at y in [from, to], by Clenshaw's recurrence.
double Chebyshev(const ChebyshevPiece& piece, double y) {
  const double x = (2 * y - piece.from - piece.to) / (piece.to - piece.from);
  double b1 = 0, b2 = 0;
  for (size_t k = std::size(piece.terms) - 1; k > 0; --k) {
    const double b0 = 2 * x * b1 - b2 + piece.terms[k];
    b2 = b1;
    b1 = b0;
  }
  return x * b1 - b2 + piece.terms[0];
}

// The piece that holds y; the last one beyond the end.
template <size_t kCount>
double Chebyshev(const ChebyshevPiece (&pieces)[kCount], double y) {
  size_t i = 0;
  while (i + 1 < kCount && y > pieces[i].to) ++i;
  return Chebyshev(pieces[i], y);
}

// -log(2 min(u, 1 - u)), accurate also around u = 1/2.
double TailDepth(double u) {
  const double v = std::min(u, 1 - u);
  return v < 0.25 ? -PortableLog(2 * v) : -PortableLog1p(-2 * std::abs(u - 0.5));
}

double WithSignOf(double u, double size) {
  if (u == 0.5) return 0;
  return u < 0.5 ? -size : size;
}

// Regularised incomplete gamma functions P (lower) and Q = 1 - P of one shape, one of them with
// relative accuracy, the other by subtraction.
struct GammaTails {
  double lower, upper, density;
};

// log of w^shape exp(-w) / Gamma(shape + 1).
double LogGammaTerm(double shape, double log_normalizer, double w) {
  return shape * PortableLog(w) - w - log_normalizer - PortableLog(shape);
}

GammaTails GammaTailsOf(double shape, double log_normalizer, double w) {
  const double term = PortableExp(LogGammaTerm(shape, log_normalizer, w));
  GammaTails tails;
  tails.density = term * shape / w;
  if (w < shape + 1) {
    // P = w^a e^-w / Gamma(a + 1) * (1 + w / (a + 1) + w^2 / ((a + 1) (a + 2)) + ...).
    double sum = 1, next = 1;
    for (double a = shape + 1; next > sum * 0x1p-56; a += 1) sum += (next *= w / a);
    tails.lower = term * sum;
    tails.upper = 1 - tails.lower;
    return tails;
  }
  // Q = w^a e^-w / Gamma(a) times a continued fraction (Legendre), by Lentz's method.
  double b = w + 1 - shape, c = 1e300, d = 1 / b, fraction = d;
  for (double i = 1; i < 20000; i += 1) {
    const double a = -i * (i - shape);
    b += 2;
    d = 1 / (a * d + b);
    c = b + a / c;
    const double step = c * d;
    fraction *= step;
    if (std::abs(step - 1) < 0x1p-52) break;
  }
  tails.upper = term * shape * fraction;
  tails.lower = 1 - tails.upper;
  return tails;
}

}  // namespace

double NormalQuantile(double u) {
  const double v = std::min(u, 1 - u), q = u - 0.5;
  const double w = v < 0.25 ? -PortableLog(4 * v * (1 - v)) : -PortableLog1p(-4 * q * q);
  return q * (w <= 6 ? Chebyshev(kNormalCenter, w) : Chebyshev(kNormalTail, std::sqrt(w)));
}

double CauchyQuantile(double u) {
  const double v = std::min(u, 1 - u);
  const double size = v < 0.25 ? 1 / PortableTanPi(v) : PortableTanPi(std::abs(u - 0.5));
  return WithSignOf(u, size);
}

double LaplaceQuantile(double u) { return WithSignOf(u, TailDepth(u)); }

double SechQuantile(double u) {
  const double v = std::min(u, 1 - u);
  double size = 0;
  if (v < 0.25) {
    size = -PortableLog(PortableTanPi(v / 2));
  } else {  // 2 atanh(t)
    const double t = PortableTanPi(std::abs(u - 0.5) / 2);
    size = PortableLog1p(2 * t / (1 - t));
  }
  return WithSignOf(u, size / std::numbers::pi);
}

double JensenShannonQuantile(double u) {
  const double depth = std::min(TailDepth(u), 40.0);
  return WithSignOf(u, Chebyshev(kJensenShannon, depth));
}

double ExponentialQuantile(double u) { return -PortableLog(u); }

double LevyQuantile(double u) {
  // u / 2 would lose what is left of 1 - u; around the middle z is linear in q.
  const double z = NormalQuantile(u / 2);
  return 1 / (2 * z * z);
}

double GammaQuantile(double shape, double u) {
  const double log_normalizer = PortableLogGamma(shape);
  const double q = 1 - u;
  // Start: P ~ w^shape / Gamma(shape + 1) for small w, the cube of a normal (Wilson & Hilferty
  // 1931) elsewhere.
  const double log_small = (PortableLog(u) + log_normalizer + PortableLog(shape)) / shape;
  if (log_small < -740) return 0;
  double w = PortableExp(log_small);
  if (w > 0.1 * (shape + 1) || shape > 8) {
    const double ninth = 1 / (9 * shape);
    const double root = 1 - ninth + NormalQuantile(u) * std::sqrt(ninth);
    const double cube = shape * root * root * root;
    if (shape >= 0.5 && root > 0.1) w = cube;
    if (shape < 0.5 && w > 1) w = std::max(1.0, -PortableLog(q) - log_normalizer);
  }
  // Halley steps on log P or log Q as a function of log w, where both are smooth and concave.
  for (int step = 0; step < 60; ++step) {
    const GammaTails tails = GammaTailsOf(shape, log_normalizer, w);
    const bool use_lower = u < 0.5;
    const double tail = use_lower ? tails.lower : tails.upper;
    const double log_error = use_lower ? PortableLog(tail / u) : -PortableLog(tail / q);
    const double slope = w * tails.density / tail;  // d log tail / d log w, size
    double move = log_error / slope;
    // Second derivative of log tail over the first, in log w.
    const double bend = shape - w + (use_lower ? -slope : slope);
    const double halley = 1 - 0.5 * move * bend;
    if (halley > 0.5 && halley < 2) move /= halley;
    move = std::clamp(move, -1.0, 1.0);
    w *= PortableExp(-move);
    if (std::abs(move) < 1e-15) break;
    if (step > 8 && std::abs(move) < 1e-13) break;
  }
  return w;
}

double ChiQuantile(double dimension, double u) {
  return std::sqrt(2 * GammaQuantile(dimension / 2, u));
}

double RademacherQuantile(double u) { return u < 0.5 ? -1 : 1; }

}  // namespace kernelstream

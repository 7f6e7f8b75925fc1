// Log lines and metrics.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/telemetry/log.h"
#include "server/telemetry/metrics.h"

namespace kernelstream::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Log, TextLineHasKeysAndQuotesWhatNeedsIt) {
  EXPECT_EQ(FormatLogLine(LogFormat::kText, LogLevel::kInfo, "T", "recovered",
                          {{"model", "churn"},
                           {"step", 81920},
                           {"seconds", 0.5},
                           {"error", "a \"b\"\nc=d"},
                           {"empty", ""}}),
            "T INFO event=recovered model=churn step=81920 seconds=0.5 "
            "error=\"a \\\"b\\\"\\nc=d\" empty=\"\"");
}

TEST(Log, JsonLineIsOneObject) {
  EXPECT_EQ(FormatLogLine(LogFormat::kJson, LogLevel::kError, "T", "model_failed",
                          {{"model", "m"}, {"error", std::string("x\x01\\y")}}),
            "{\"time\":\"T\",\"level\":\"error\",\"event\":\"model_failed\",\"model\":\"m\","
            "\"error\":\"x\\u0001\\\\y\"}");
}

TEST(Log, UnknownNamesListTheKnownOnes) {
  LogLevel level;
  LogFormat format;
  EXPECT_TRUE(ParseLogLevel("WARNING", &level).ok());
  EXPECT_EQ(level, LogLevel::kWarning);
  EXPECT_THAT(std::string(ParseLogLevel("loud", &level).message()),
              HasSubstr("debug, info, warning, error"));
  EXPECT_TRUE(ParseLogFormat("json", &format).ok());
  EXPECT_EQ(format, LogFormat::kJson);
  EXPECT_THAT(std::string(ParseLogFormat("xml", &format).message()), HasSubstr("text, json"));
}

TEST(Metrics, SeriesOfAModelGoWithItsLastReference) {
  Metrics metrics;
  auto first = metrics.ForModel("m");
  first->RowsAccepted(3);
  auto second = metrics.ForModel("m");
  second->RowsAccepted(4);
  EXPECT_THAT(metrics.Text(), HasSubstr("kernelstream_rows_accepted_total{model=\"m\"} 7"));
  first.reset();
  EXPECT_THAT(metrics.Text(), HasSubstr("model=\"m\""));
  second.reset();
  EXPECT_THAT(metrics.Text(), Not(HasSubstr("model=\"m\"")));
  metrics.ForModel("m")->RowsAccepted(1);
  EXPECT_THAT(metrics.Text(), Not(HasSubstr("} 8")));
}

TEST(Metrics, EverythingIsInTheText) {
  Metrics metrics;
  const auto model = metrics.ForModel("m");
  model->RowsRejected(2);
  model->Learned(64, 1, absl::Milliseconds(3));
  model->PendingRows(9);
  model->Phase(PhaseMetric::kFrozen);
  model->Published(absl::Microseconds(50));
  model->CheckpointWritten(absl::Milliseconds(20));
  model->CheckpointFailed();
  model->Drifted(2);
  model->Predicted(5, absl::Microseconds(10), absl::Microseconds(200));
  metrics.Committed(absl::Milliseconds(2), 7);
  metrics.CommitFailed();
  metrics.ObserveFeatureCache([] { return 4096.0; });
  RpcMetrics& rpc = metrics.ForRpc("kernelstream.v1.PredictionService", "Predict");
  rpc.Started();
  rpc.Handled(absl::StatusCode::kNotFound, absl::Milliseconds(1));
  EXPECT_EQ(&rpc, &metrics.ForRpc("kernelstream.v1.PredictionService", "Predict"));
  const std::string text = metrics.Text();
  for (const char* line : {
           "kernelstream_rows_rejected_total{model=\"m\"} 2",
           "kernelstream_rows_learned_total{model=\"m\"} 64",
           "kernelstream_steps_total{model=\"m\"} 1",
           "kernelstream_pending_rows{model=\"m\"} 9",
           "kernelstream_model_phase{model=\"m\"} 3",
           "kernelstream_step_seconds_count{model=\"m\"} 1",
           "kernelstream_publish_seconds_count{model=\"m\"} 1",
           "kernelstream_checkpoint_seconds_count{model=\"m\"} 1",
           "kernelstream_checkpoint_failures_total{model=\"m\"} 1",
           "kernelstream_drift_reports_total{model=\"m\"} 2",
           "kernelstream_predict_queue_seconds_count{model=\"m\"} 1",
           "kernelstream_predict_compute_seconds_count{model=\"m\"} 1",
           "kernelstream_predict_rows_total{model=\"m\"} 5",
           "kernelstream_log_commit_seconds_count 1",
           "kernelstream_log_commit_appends_sum 7",
           "kernelstream_log_commit_failures_total 1",
           "kernelstream_feature_cache_bytes 4096",
           "grpc_code=\"NOT_FOUND\"",
       }) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(Metrics, ServesOnAFreePortAndExplainsATakenOne) {
  Metrics first, second;
  const auto port = first.Serve("127.0.0.1:0");
  ASSERT_TRUE(port.ok()) << port.status();
  EXPECT_GT(*port, 0);
  EXPECT_EQ(second.Serve(absl::StrCat("127.0.0.1:", *port)).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(second.Serve("nowhere").status().code(), absl::StatusCode::kInvalidArgument);
  first.Stop();
  first.Stop();
}

}  // namespace
}  // namespace kernelstream::server

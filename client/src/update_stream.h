#ifndef KERNELSTREAM_CLIENT_SRC_UPDATE_STREAM_H_
#define KERNELSTREAM_CLIENT_SRC_UPDATE_STREAM_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/include/kernelstream/client.h"
#include "client/src/transport.h"
#include "kernelstream/v1/online_update_service.pb.h"

namespace kernelstream::client {

// Thread-safe. The window of unacknowledged batches and the thread that keeps a connection under
// it.
//
// One runner thread opens a connection, reads acks from it, and on failure waits and opens the
// next; one writer thread per connection sends the batches of the window from `written_` on. A new
// connection starts again at the first row the server has not logged.
struct UpdateStream::Impl {
  Impl(std::shared_ptr<Transport> transport, std::string model, StreamOptions options);
  ~Impl();

  // Starts the runner and waits for the first Opened.
  absl::Status Open();
  absl::StatusOr<size_t> TrySend(absl::Span<const Row> rows, absl::Duration timeout);
  absl::Status Flush(absl::Duration timeout);
  UpdateSummary Close(absl::Duration timeout);
  void Cancel();
  StreamProgress progress() const;
  uint64_t next_row() const;
  const std::string& producer_id() const { return options_.producer_id; }

 private:
  using Stream = grpc::ClientReaderWriter<v1::StreamUpdateRequest, v1::StreamUpdateResponse>;
  struct Batch {
    uint64_t first_row;
    uint64_t rows;
    std::shared_ptr<const v1::StreamUpdateRequest> request;
  };

  void Run();
  // One connection, from opening to its end. *grpc_status is how it ended.
  absl::Status RunConnection(grpc::Status* grpc_status);
  absl::Status Converse(Stream* stream, grpc::ClientContext* context);
  void WriteLoop(Stream* stream);
  absl::Status OnOpened(const v1::StreamUpdateResponse::Opened& opened);
  absl::Status OnAck(const v1::StreamUpdateResponse::Ack& ack);
  // Forgets rows below `next_row`. Returns how many.
  uint64_t Acknowledge(uint64_t next_row) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Wait(absl::Duration delay);
  // Number of rows from the front of `rows` that fit the window now and one message.
  absl::StatusOr<size_t> NextChunk(absl::Span<const Row> rows, uint64_t number, uint64_t room,
                                   uint64_t max_message_bytes) const;
  absl::Status NotAcknowledged(absl::string_view why) const ABSL_SHARED_LOCKS_REQUIRED(mu_);

  const std::shared_ptr<Transport> transport_;
  const std::string model_;
  const StreamOptions options_;
  std::thread runner_;

  // Held over a whole TrySend, so that the rows of one call stay together.
  absl::Mutex send_mu_ ABSL_ACQUIRED_BEFORE(mu_);
  mutable absl::Mutex mu_;
  std::deque<Batch> pending_ ABSL_GUARDED_BY(mu_);    // Unacknowledged, ascending.
  size_t written_ ABSL_GUARDED_BY(mu_) = 0;           // Of pending_, sent on this connection.
  uint64_t in_flight_rows_ ABSL_GUARDED_BY(mu_) = 0;  // Rows in pending_.
  uint64_t next_row_ ABSL_GUARDED_BY(mu_) = 1;
  uint64_t acknowledged_ ABSL_GUARDED_BY(mu_) = 1;  // All rows below are dealt with.
  uint64_t window_ ABSL_GUARDED_BY(mu_) = 1;
  uint64_t max_message_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  bool opened_ ABSL_GUARDED_BY(mu_) = false;  // At least once.
  bool connected_ ABSL_GUARDED_BY(mu_) = false;
  bool progressed_ ABSL_GUARDED_BY(mu_) = false;  // On this connection.
  bool closing_ ABSL_GUARDED_BY(mu_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
  bool done_ ABSL_GUARDED_BY(mu_) = false;  // The runner has ended, with status_.
  absl::Status status_ ABSL_GUARDED_BY(mu_);
  grpc::ClientContext* context_ ABSL_GUARDED_BY(mu_) = nullptr;  // Of the current connection.
  UpdateSummary summary_ ABSL_GUARDED_BY(mu_);
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace kernelstream::client

#endif  // KERNELSTREAM_CLIENT_SRC_UPDATE_STREAM_H_

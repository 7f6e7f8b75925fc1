// What a checkpoint holds of the uncertainty of predictions.
#ifndef KERNELSTREAM_SERVER_STORE_VARIANCE_CODEC_H_
#define KERNELSTREAM_SERVER_STORE_VARIANCE_CODEC_H_

#include "absl/status/status.h"
#include "core/model/trainer_state.h"
#include "kernelstream/storage/v1/record.pb.h"

namespace kernelstream::server::codec {

// Writes the variance fields; none if the model has no variance.
void EncodeVariance(const TrainerState& state, storage::v1::CheckpointRecord& out);
// Reads them. DATA_LOSS if an array is cut; whether arrays fit the config is for the trainer to
// say.
absl::Status DecodeVariance(const storage::v1::CheckpointRecord& record, TrainerState& out);

}  // namespace kernelstream::server::codec

#endif  // KERNELSTREAM_SERVER_STORE_VARIANCE_CODEC_H_

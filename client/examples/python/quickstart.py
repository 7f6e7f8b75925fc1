"""Five minutes with kernelstream from Python, through stubs generated from proto/.

How to generate them: ../README.md. Run: python quickstart.py [HOST:PORT]
"""

import array
import math
import sys

import grpc

from kernelstream.v1 import model_pb2, model_service_pb2, model_service_pb2_grpc
from kernelstream.v1 import online_update_service_pb2 as update_pb2
from kernelstream.v1 import online_update_service_pb2_grpc as update_grpc
from kernelstream.v1 import prediction_service_pb2 as prediction_pb2
from kernelstream.v1 import prediction_service_pb2_grpc as prediction_grpc
from kernelstream.v1 import sample_pb2

MODEL = "quickstart-python"
ROWS = 20000
ROWS_PER_BATCH = 100


def make_row(i):
    """Two inputs; the target is 1 inside a ring."""
    x = 2 * (0.754877666 * i % 1.0) - 1
    y = 2 * (0.569840291 * i % 1.0) - 1
    return [x, y], 1.0 if 0.4 < math.hypot(x, y) < 0.8 else -1.0


def matrix(rows):
    """Rows as one message: float32 values, row-major, little-endian."""
    values = array.array("f", [value for inputs, _ in rows for value in inputs])
    if sys.byteorder == "big":
        values.byteswap()
    return sample_pb2.SampleMatrix(
        rows=len(rows),
        dimension=2,
        values=values.tobytes(),
        targets=[target for _, target in rows],
    )


def messages():
    """First where the rows go, then the rows. Rows are numbered: sending them again learns nothing twice."""
    yield update_pb2.StreamUpdateRequest(
        open=update_pb2.StreamUpdateRequest.Open(
            model=MODEL,
            producer_id="quickstart.py",
            ack=update_pb2.ACK_LEVEL_APPLIED,
        )
    )
    for first in range(1, ROWS + 1, ROWS_PER_BATCH):
        rows = [make_row(i) for i in range(first, min(first + ROWS_PER_BATCH, ROWS + 1))]
        yield update_pb2.StreamUpdateRequest(
            batch=update_pb2.StreamUpdateRequest.Batch(
                producer_sequence=first, matrix=matrix(rows)
            )
        )


def main():
    address = sys.argv[1] if len(sys.argv) > 1 else "localhost:50051"
    with grpc.insecure_channel(address) as channel:
        models = model_service_pb2_grpc.ModelServiceStub(channel)
        config = model_pb2.ModelConfig(loss=model_pb2.Component(name="logistic"))
        models.CreateModel(
            model_service_pb2.CreateModelRequest(name=MODEL, config=config),
            timeout=10,
            wait_for_ready=True,
        )

        last = None
        for response in update_grpc.OnlineUpdateServiceStub(channel).StreamUpdate(messages()):
            if response.HasField("ack"):
                last = response.ack
                for rejected in last.rejected:
                    print(f"row {rejected.producer_sequence}: {rejected.status.message}")
        print(f"rows below {last.next_producer_sequence} are learned, step {last.step}")

        points = [(0.0, 0.0), (0.6, 0.0), (0.95, 0.9)]
        request = prediction_pb2.PredictRequest(
            model=MODEL,
            instances=[
                sample_pb2.Features(dense=sample_pb2.DenseVector(values=point))
                for point in points
            ],
            outputs=[
                prediction_pb2.PREDICTION_OUTPUT_LABEL,
                prediction_pb2.PREDICTION_OUTPUT_PROBABILITIES,
            ],
        )
        response = prediction_grpc.PredictionServiceStub(channel).Predict(request, timeout=10)
        for point, prediction in zip(points, response.predictions):
            chances = ", ".join(f"P({p.label}) = {p.value:.3f}" for p in prediction.probabilities)
            print(f"{point} -> label {prediction.label}  {chances}")


if __name__ == "__main__":
    try:
        main()
    except grpc.RpcError as error:
        sys.exit(f"quickstart.py: {error.code().name}: {error.details()}")

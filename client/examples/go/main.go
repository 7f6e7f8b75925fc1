// Five minutes with kernelstream from Go, through stubs generated from proto/.
// How to generate them: ../README.md. Run: go run . [HOST:PORT]
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	ks "quickstart/kernelstream/v1"
)

const (
	model        = "quickstart-go"
	rows         = 20000
	rowsPerBatch = 100
)

// makeRow has two inputs; the target is 1 inside a ring.
func makeRow(i int) (x, y float32, target float64) {
	u := 2*math.Mod(0.754877666*float64(i), 1) - 1
	v := 2*math.Mod(0.569840291*float64(i), 1) - 1
	target = -1
	if r := math.Hypot(u, v); r > 0.4 && r < 0.8 {
		target = 1
	}
	return float32(u), float32(v), target
}

// batch holds rows first to last as one matrix: float32, row-major, little-endian.
func batch(first, last int) *ks.StreamUpdateRequest {
	matrix := &ks.SampleMatrix{Rows: uint32(last - first + 1), Dimension: 2}
	for i := first; i <= last; i++ {
		x, y, target := makeRow(i)
		matrix.Values = binary.LittleEndian.AppendUint32(matrix.Values, math.Float32bits(x))
		matrix.Values = binary.LittleEndian.AppendUint32(matrix.Values, math.Float32bits(y))
		matrix.Targets = append(matrix.Targets, target)
	}
	return &ks.StreamUpdateRequest{Message: &ks.StreamUpdateRequest_Batch_{
		Batch: &ks.StreamUpdateRequest_Batch{ProducerSequence: uint64(first), Matrix: matrix},
	}}
}

// learn streams all rows. They are numbered, so running it again learns nothing twice.
func learn(ctx context.Context, connection *grpc.ClientConn) error {
	stream, err := ks.NewOnlineUpdateServiceClient(connection).StreamUpdate(ctx)
	if err != nil {
		return err
	}
	go func() {
		// A failed Send ends the stream; Recv below says why.
		if stream.Send(&ks.StreamUpdateRequest{Message: &ks.StreamUpdateRequest_Open_{
			Open: &ks.StreamUpdateRequest_Open{
				Model:      model,
				ProducerId: "main.go",
				Ack:        ks.AckLevel_ACK_LEVEL_APPLIED,
			},
		}}) != nil {
			return
		}
		for first := 1; first <= rows; first += rowsPerBatch {
			if stream.Send(batch(first, min(first+rowsPerBatch-1, rows))) != nil {
				return
			}
		}
		_ = stream.CloseSend()
	}()
	var last *ks.StreamUpdateResponse_Ack
	for {
		response, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if ack := response.GetAck(); ack != nil {
			last = ack
			for _, rejected := range ack.Rejected {
				fmt.Printf("row %d: %s\n", rejected.ProducerSequence, rejected.Status.GetMessage())
			}
		}
	}
	fmt.Printf("rows below %d are learned, step %d\n", last.GetNextProducerSequence(), last.GetStep())
	return nil
}

func run(address string) error {
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()

	_, err = ks.NewModelServiceClient(connection).CreateModel(ctx, &ks.CreateModelRequest{
		Name:   model,
		Config: &ks.ModelConfig{Loss: &ks.Component{Name: "logistic"}},
	}, grpc.WaitForReady(true))
	if err != nil {
		return err
	}
	if err := learn(ctx, connection); err != nil {
		return err
	}

	points := [][]float32{{0, 0}, {0.6, 0}, {0.95, 0.9}}
	request := &ks.PredictRequest{
		Model: model,
		Outputs: []ks.PredictionOutput{
			ks.PredictionOutput_PREDICTION_OUTPUT_LABEL,
			ks.PredictionOutput_PREDICTION_OUTPUT_PROBABILITIES,
		},
	}
	for _, point := range points {
		request.Instances = append(request.Instances, &ks.Features{
			Kind: &ks.Features_Dense{Dense: &ks.DenseVector{Values: point}},
		})
	}
	response, err := ks.NewPredictionServiceClient(connection).Predict(ctx, request)
	if err != nil {
		return err
	}
	for i, prediction := range response.Predictions {
		fmt.Printf("%v -> label %s", points[i], prediction.Label)
		for _, p := range prediction.Probabilities {
			fmt.Printf("  P(%s) = %.3f", p.Label, p.Value)
		}
		fmt.Println()
	}
	return nil
}

func main() {
	address := "localhost:50051"
	if len(os.Args) > 1 {
		address = os.Args[1]
	}
	if err := run(address); err != nil {
		log.Fatal(err)
	}
}

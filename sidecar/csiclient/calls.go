package csiclient

import (
	"context"
	"log/slog"
	"time"

	"github.com/kubernetes-csi/csi-lib-utils/metrics"
	"github.com/kubernetes-csi/csi-lib-utils/protosanitizer"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

// countCalls counts every call under the name upstream's sidecars have for it.
func countCalls(counter metrics.CSIMetricsManager) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, request, answer any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
		began := time.Now()
		err := invoke(ctx, method, request, answer, conn, options...)
		if counter != nil {
			counter.RecordMetrics(method, err, time.Since(began))
		}
		return err
	}
}

// logCalls logs every call at debug. What CSI marks as a secret is left out.
func logCalls(log *slog.Logger) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, request, answer any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
		if !log.Enabled(ctx, slog.LevelDebug) {
			return invoke(ctx, method, request, answer, conn, options...)
		}
		asked := protosanitizer.StripSecrets(request).String()
		began := time.Now()
		err := invoke(ctx, method, request, answer, conn, options...)
		log.DebugContext(ctx, "CSI call", "method", method, "request", asked, "took", time.Since(began), "code", status.Code(err).String(),
			"answer", protosanitizer.StripSecrets(answer).String())
		return err
	}
}

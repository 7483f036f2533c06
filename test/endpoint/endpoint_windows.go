package endpoint

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Microsoft/go-winio"
)

// dialTime bounds the wait for a free instance.
const dialTime = 10 * time.Second

// count makes the names of one process differ.
var count atomic.Int64

func own(testing.TB) string {
	return fmt.Sprintf(`npipe:\\.\pipe\csi-test-%d-%d`, os.Getpid(), count.Add(1))
}

func dial(ctx context.Context, endpoint string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	return winio.DialPipeContext(ctx, strings.TrimPrefix(endpoint, "npipe:"))
}

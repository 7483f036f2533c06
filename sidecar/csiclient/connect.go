package csiclient

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/kubernetes-csi/csi-lib-utils/metrics"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/csi-windows/csi-windows/internal/endpoint"
)

const (
	// timeoutDefault is how long the driver may take to say what it is. One that
	// took too long is given twice as much the next time, up to timeoutMax: some
	// are slow while they start, and there is nothing to do without them.
	timeoutDefault = 10 * time.Second
	timeoutMax     = 2 * time.Minute
	// waitDelay is the time between two looks whether the driver is ready.
	waitDelay = time.Second
	// waitLogInterval is the time between two lines about a driver that is not.
	waitLogInterval = time.Minute
	// answerBytesMax bounds an answer: a listing of very many volumes is large.
	answerBytesMax = 32 << 20
	// reconnectDelayMax is the longest time between two tries to connect to a
	// driver that has gone: it is on the same machine.
	reconnectDelayMax = 2 * time.Second
	connectTimeout    = 5 * time.Second
)

// Config says which driver is connected to, and how.
type Config struct {
	// Address is a path, unix:PATH, unix://PATH, tcp://HOST:PORT or, on
	// Windows, npipe:NAME.
	Address string
	// Timeout is how long one of the calls may take, at first, that ask what the
	// driver is. 0 for 10 s.
	Timeout time.Duration
	// NameOnly has the driver asked for nothing but its name. What serves a node
	// may claim controllers that it does not have.
	NameOnly bool
	// Metrics count every call. Nil for none.
	Metrics metrics.CSIMetricsManager
	// Log is told why a driver is waited for and, at debug, every call.
	Log *slog.Logger
}

// link is what is behind a driver that is watched.
type link struct {
	config Config
	at     endpoint.Endpoint
	// dialed counts connections, met is the last of which the driver was asked
	// what it is.
	dialed atomic.Int64
	met    int64
	// runs counts the runs of the driver that were connected to.
	runs runs
	// wake ends the wait of Watch when there is a new connection.
	wake atomic.Pointer[context.CancelFunc]
}

// Connect connects to a driver, waits until it is ready, and asks what it is.
func Connect(ctx context.Context, config Config) (*Driver, error) {
	d, err := Open(config)
	if err != nil {
		return nil, err
	}
	if err := d.Meet(ctx); err != nil {
		_ = d.Close() // nothing came of it
		return nil, err
	}
	return d, nil
}

// Open gives a driver that nothing is known of yet and that Meet is to be called
// for. Nothing is connected before that.
func Open(config Config) (*Driver, error) {
	at, err := endpoint.Parse(config.Address, runtime.GOOS)
	if err != nil {
		return nil, err
	}
	config.Timeout = cmp.Or(config.Timeout, timeoutDefault)
	l := &link{config: config, at: at}
	conn, err := grpc.NewClient("passthrough:///"+at.String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(l.dial),
		grpc.WithAuthority("localhost"), // the path of a socket is no name of a host, and some servers check
		grpc.WithIdleTimeout(0),         // a connection that is closed looks like a driver that has gone
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: reconnectDelayMax},
			MinConnectTimeout: connectTimeout,
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(answerBytesMax)),
		grpc.WithChainUnaryInterceptor(countCalls(config.Metrics), logCalls(config.Log), CleanErrors),
	)
	if err != nil {
		return nil, fmt.Errorf("driver at %s: %w", at, err)
	}
	d := New(conn, Info{})
	d.link = l
	return d, nil
}

// Meet waits until the driver is ready and asks what it is. However long the
// driver takes to come up is no failure: ctx ends the wait.
func (d *Driver) Meet(ctx context.Context) error {
	info, err := d.link.meet(ctx, d.conn)
	if err != nil {
		return err
	}
	d.replace(info, false)
	if d.link.config.Metrics != nil {
		d.link.config.Metrics.SetDriverName(info.Name)
	}
	return nil
}

// Close ends the connection. Calls under way end.
func (d *Driver) Close() error { return d.conn.Close() }

func (l *link) dial(ctx context.Context, _ string) (net.Conn, error) {
	before := socketFile(l.at)
	conn, err := l.at.Dial(ctx)
	if err == nil {
		l.runs.connected(before, socketFile(l.at))
		l.dialed.Add(1)
		if wake := l.wake.Load(); wake != nil {
			(*wake)()
		}
	}
	return conn, err
}

// Watch sees when the driver's connection is lost, meets the driver that comes
// after it, and returns an error when that has another name. It returns nil
// when ctx ends. It costs nothing while the connection is there.
func (d *Driver) Watch(ctx context.Context) error {
	if d.link == nil {
		<-ctx.Done()
		return nil
	}
	isLost := false
	for ctx.Err() == nil {
		// A connection that is lost and there again at once leaves no trace in the
		// state; the dial ends the wait then.
		wait, cancel := context.WithCancel(ctx)
		d.link.wake.Store(&cancel)
		state := d.conn.GetState()
		switch {
		case state == connectivity.Ready && d.link.dialed.Load() != d.link.met:
			isLost = false
			if err := d.meetAgain(ctx); err != nil {
				cancel()
				return err
			}
		case state == connectivity.Ready:
			d.conn.WaitForStateChange(wait, state)
		default:
			if !isLost {
				d.link.config.Log.WarnContext(ctx, "The driver's connection is lost, it is waited for", "driver", d.Name(), "address", d.link.at.String())
			}
			isLost = true
			d.conn.Connect() // does nothing unless the connection is idle
			d.conn.WaitForStateChange(wait, state)
		}
		cancel()
	}
	return nil
}

// meetAgain asks a driver what it is that has come in the place of the last.
func (d *Driver) meetAgain(ctx context.Context) error {
	info, err := d.link.meet(ctx, d.conn)
	if err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it was to end
		}
		return err
	}
	last := d.Info()
	if info.Name != last.Name {
		return fmt.Errorf("driver at %s: it is %q now and was %q", d.link.at, info.Name, last.Name)
	}
	isOther := !info.canTheSame(last)
	d.link.config.Log.InfoContext(ctx, "The driver is back", "driver", info.Name, "version", info.VendorVersion, "hasOtherCapabilities", isOther)
	d.replace(info, isOther)
	return nil
}

// canTheSame reports whether two runs of a driver have the same capabilities.
func (i Info) canTheSame(other Info) bool {
	return maps.Equal(i.Plugin, other.Plugin) && maps.Equal(i.Expansion, other.Expansion) &&
		maps.Equal(i.Controller, other.Controller) && maps.Equal(i.GroupController, other.GroupController)
}

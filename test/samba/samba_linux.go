package samba

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// RequiredVariable is a variable of the environment that, set to 1, makes tests fail where there is no Samba, instead of
// passing them over.
const RequiredVariable = "CSI_SAMBA_REQUIRED"

const (
	startTimeout   = 30 * time.Second
	stopTimeout    = 10 * time.Second
	programTimeout = 30 * time.Second
	startTries     = 3
)

// Domain is the workgroup of every server.
const Domain = "CSITEST"

// Share is one share of a server.
type Share struct {
	Name string
	// Encrypt refuses clients that do not encrypt.
	Encrypt bool
}

// Options are those of a server.
type Options struct {
	Shares []Share
	// Encryption is the setting "server smb encrypt": off, desired or required;
	// empty is the default of Samba.
	Encryption string
	// Password of the user; empty is one that is hard to pass on.
	Password string
}

// Server is a running smbd.
type Server struct {
	Port     int
	User     string // as the server knows it
	Password string

	t       testing.TB
	folder  string
	options Options
	running *exec.Cmd
	ended   chan struct{}
}

// Start runs a server until the test ends. Where smbd is not installed, the test is
// passed over, or fails when RequiredVariable says so.
func Start(t testing.TB, options Options) *Server {
	t.Helper()
	for _, name := range []string{"smbd", "pdbedit"} {
		if program(name) != "" {
			continue
		}
		if os.Getenv(RequiredVariable) == "1" {
			t.Fatalf("%s is not installed, and %s=1 asks for it", name, RequiredVariable)
		}
		t.Skipf("%s is not installed (Debian's package samba)", name)
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	if options.Password == "" {
		options.Password = `pä$s'w"o\r,d;%x`
	}
	s := &Server{t: t, User: me.Username, folder: t.TempDir(), options: options}
	for _, name := range []string{"private", "lock", "state", "cache", "pid", "ncalrpc"} {
		s.makeFolder(name)
	}
	for _, share := range options.Shares {
		s.makeFolder("shares/" + share.Name)
	}
	s.Port = ownPort(t)
	s.writeConfig()
	s.SetPassword(options.Password)
	t.Cleanup(func() {
		s.Stop()
		if t.Failed() {
			t.Logf("the end of what smbd wrote:\n%s", s.log())
		}
	})
	s.Run()
	return s
}

// Address is where the server listens.
func (s *Server) Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port)) }

// Folder is where the files of a share are on the disk.
func (s *Server) Folder(share string) string { return filepath.Join(s.folder, "shares", share) }

// SetPassword changes the user's password. Sessions stay.
func (s *Server) SetPassword(password string) {
	s.t.Helper()
	s.Password = password
	ctx, cancel := context.WithTimeout(context.Background(), programTimeout)
	defer cancel()
	args := []string{"--create", "--user", s.User}
	if s.userIsKnown(ctx) {
		args = []string{"--delete", "--user", s.User}
		s.pdbedit(ctx, "", args...)
		args[0] = "--create"
	}
	s.pdbedit(ctx, password+"\n"+password+"\n", append(args, "-t")...)
}

func (s *Server) userIsKnown(ctx context.Context) bool {
	command := exec.CommandContext(ctx, program("pdbedit"), "--configfile", s.configFile(), "--list", "--user", s.User)
	return command.Run() == nil
}

func (s *Server) pdbedit(ctx context.Context, input string, args ...string) {
	s.t.Helper()
	command := exec.CommandContext(ctx, program("pdbedit"), append([]string{"--configfile", s.configFile()}, args...)...)
	command.Stdin = strings.NewReader(input)
	if output, err := command.CombinedOutput(); err != nil {
		s.t.Fatalf("pdbedit %v: %v\n%s", args, err, output)
	}
}

// Run starts the server again after Stop, on the same port.
func (s *Server) Run() {
	s.t.Helper()
	for try := 1; ; try++ {
		err := s.run()
		if err == nil {
			return
		}
		if try == startTries {
			s.t.Fatalf("smbd: %v\n%s", err, s.log())
		}
		s.Stop()
	}
}

func (s *Server) run() error {
	log, err := os.OpenFile(filepath.Join(s.folder, "output.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	s.running = exec.Command(program("smbd"), "--foreground", "--no-process-group", "--configfile", s.configFile())
	s.running.Stdout, s.running.Stderr = log, log
	// It makes a process for each connection; they end together.
	s.running.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := s.running.Start(); err != nil {
		s.running = nil
		return err
	}
	s.ended = make(chan struct{})
	go func(command *exec.Cmd, ended chan struct{}) {
		defer close(ended)
		_ = command.Wait()
	}(s.running, s.ended)
	deadline := time.Now().Add(startTimeout)
	for time.Now().Before(deadline) {
		conn, err := net.DialTimeout("tcp", s.Address(), time.Second)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-s.ended:
			return fmt.Errorf("it ended: %s", s.running.ProcessState)
		case <-time.After(20 * time.Millisecond):
		}
	}
	return fmt.Errorf("nothing listens at %s after %s", s.Address(), startTimeout)
}

// Stop ends the server and its connections at once, as a crash would.
func (s *Server) Stop() {
	if s.running == nil {
		return
	}
	_ = syscall.Kill(-s.running.Process.Pid, syscall.SIGKILL)
	select {
	case <-s.ended:
	case <-time.After(stopTimeout):
		s.t.Errorf("smbd %d did not end within %s", s.running.Process.Pid, stopTimeout)
	}
	s.running = nil
}

func (s *Server) configFile() string { return filepath.Join(s.folder, "smb.conf") }

func (s *Server) writeConfig() {
	var b bytes.Buffer
	fmt.Fprintf(&b, "[global]\n")
	set := func(name, value string) { fmt.Fprintf(&b, "\t%s = %s\n", name, value) }
	set("server role", "standalone server")
	set("workgroup", Domain)
	set("netbios name", "CSISAMBA")
	set("interfaces", "127.0.0.1")
	set("bind interfaces only", "yes")
	set("smb ports", strconv.Itoa(s.Port))
	set("disable netbios", "yes")
	set("passdb backend", "tdbsam:"+filepath.Join(s.folder, "private", "passdb.tdb"))
	for name, folder := range map[string]string{
		"private dir": "private", "lock directory": "lock", "state directory": "state", "cache directory": "cache",
		"pid directory": "pid", "ncalrpc dir": "ncalrpc", "log file": "smbd.log",
	} {
		set(name, filepath.Join(s.folder, folder))
	}
	// With it smbd refuses every tree for want of memory (STATUS_NO_MEMORY) until its
	// daemon for such notes runs, which on a busy machine is after it listens.
	set("change notify", "no")
	set("map to guest", "never")
	set("load printers", "no")
	set("printing", "bsd")
	set("printcap name", "/dev/null")
	set("disable spoolss", "yes")
	set("rpc start on demand helpers", "no")
	if s.options.Encryption != "" {
		set("server smb encrypt", s.options.Encryption)
	}
	for _, share := range s.options.Shares {
		fmt.Fprintf(&b, "[%s]\n", share.Name)
		set("path", s.Folder(share.Name))
		set("read only", "no")
		if share.Encrypt {
			set("server smb encrypt", "required")
		}
	}
	if err := os.WriteFile(s.configFile(), b.Bytes(), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *Server) makeFolder(name string) {
	if err := os.MkdirAll(filepath.Join(s.folder, filepath.FromSlash(name)), 0o700); err != nil {
		s.t.Fatal(err)
	}
}

func (s *Server) log() string {
	var all []byte
	for _, name := range []string{"output.log", "smbd.log"} {
		data, _ := os.ReadFile(filepath.Join(s.folder, name))
		all = append(all, data...)
	}
	return string(all[max(0, len(all)-4000):])
}

// program is the path of a program, which may be in a folder of administrators.
func program(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	for _, folder := range []string{"/usr/sbin", "/usr/local/sbin", "/usr/local/samba/sbin"} {
		if path, err := exec.LookPath(filepath.Join(folder, name)); err == nil {
			return path
		}
	}
	return ""
}

// ownPort is a port that nobody else gets until the test ends, also while the server does
// not run: a socket has it that never listens. Who asks the system for any port does not
// get one that a socket has, and smbd, which asks for this one, may share it with a socket
// that lets it. Source: socket(7), SO_REUSEADDR.
func ownPort(t testing.TB) int {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	at, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return at.(*syscall.SockaddrInet4).Port
}

package standin

import (
	"context"
	"sync"

	"github.com/csi-windows/csi-windows/winos/win32"
)

// handles give clients numbers for the node's handles. A number is never given
// twice, so that a handle of a node that was replaced opens nothing of the new one.
type handles struct {
	mu   sync.Mutex
	open map[uint64]openHandle
	last uint64
}

type openHandle struct {
	node    Node
	handle  win32.Handle
	program uint64 // whose it is, see programs; 0 for nobody's
}

func (h *handles) add(handle openHandle) uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open == nil {
		h.open = map[uint64]openHandle{}
	}
	h.last += 4 // as Windows numbers handles
	h.open[h.last] = handle
	return h.last
}

// addHandle answers with a handle that the node has opened.
func (c *call) addHandle(node Node, handle win32.Handle) error {
	id := c.server.handles.add(openHandle{node, handle, c.conn.program})
	if !c.server.programs.runs(c.conn.program) { // it ended meanwhile
		c.server.handles.closeOf(c.conn.program)
		return errDie
	}
	c.out.u64(id)
	return nil
}

// closeOf closes the handles of a program.
func (h *handles) closeOf(program uint64) {
	h.mu.Lock()
	var left []openHandle
	for id, handle := range h.open {
		if handle.program == program {
			left = append(left, handle)
			delete(h.open, id)
		}
	}
	h.mu.Unlock()
	for _, handle := range left {
		_ = handle.node.CloseHandle(handle.handle) // a node that was replaced has closed its own
	}
}

func (h *handles) get(id uint64) (openHandle, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	found, ok := h.open[id]
	if !ok {
		return openHandle{}, &win32.Error{Call: "handle", Code: win32.ErrInvalidHandle}
	}
	return found, nil
}

func (h *handles) remove(id uint64) (openHandle, error) {
	found, err := h.get(id)
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.open, id)
	return found, err
}

func (h *handles) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.open)
}

// programs are those of the clients that say which connections are theirs. What
// a program leaves open is closed when it ends, as Windows does.
type programs struct {
	mu      sync.Mutex
	running map[uint64]bool
	last    uint64
}

func (p *programs) begin() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running == nil {
		p.running = map[uint64]bool{}
	}
	p.last++
	p.running[p.last] = true
	return p.last
}

// runs tells whether a program has not ended; nobody's things never end.
func (p *programs) runs(program uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return program == 0 || p.running[program]
}

func (p *programs) end(program uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.running, program)
}

// endProgram closes what a program left open.
func (s *Server) endProgram(program uint64) {
	s.programs.end(program)
	s.handles.closeOf(program)
	s.disks.closeOf(context.Background(), program, s.current())
	s.Settle(context.Background())
}

// runProgram takes a connection as that of a program, or as that by which a new
// program lives.
func runProgram(c *call) error {
	program := c.in.u64()
	if err := c.read(); err != nil {
		return err
	}
	switch {
	case program == 0 && c.conn.program == 0:
		program = c.server.programs.begin()
		c.conn.life = true
	case program == 0 || c.conn.life || !c.server.programs.runs(program):
		return &win32.Error{Call: "Program", Code: win32.ErrNotFound}
	}
	c.conn.program = program
	c.out.u64(program)
	return nil
}

package standin

import (
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
	node   Node
	handle win32.Handle
}

func (h *handles) add(node Node, handle win32.Handle) uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open == nil {
		h.open = map[uint64]openHandle{}
	}
	h.last += 4 // as Windows numbers handles
	h.open[h.last] = openHandle{node, handle}
	return h.last
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

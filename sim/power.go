package sim

import (
	"context"
	"errors"
	"slices"

	"github.com/csi-windows/csi-windows/winos/win32"
)

// poweredOff is the failure of a Win32 call on a node that is switched off.
func (n *Node) poweredOff(call, object string) error {
	return &win32.Error{Call: call, Object: object, Code: win32.ErrNotReady}
}

// PowerCut implements SystemController.
func (n *Node) PowerCut(context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.stopNodeLocked(true)
}

// Boot implements SystemController.
func (n *Node) Boot(context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.bootLocked()
}

// Reboot implements SystemController.
func (n *Node) Reboot(context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.stopNodeLocked(false); err != nil {
		return err
	}
	return n.bootLocked()
}

// stopNodeLocked ends everything that runs. What is not persistent is gone:
// mappings, iSCSI sessions, handles. Mount points and letters stay.
func (n *Node) stopNodeLocked(powerCut bool) error {
	if n.off.Load() {
		return errors.New("node is switched off already")
	}
	for _, s := range slices.Clone(n.state.ISCSI.Sessions) {
		n.dropSessionLocked(s, powerCut)
	}
	for _, d := range n.disks {
		n.removeVolumesLocked(d, powerCut)
		if powerCut {
			d.img.PowerCut()
		} else if err := d.img.Flush(); err != nil {
			return err
		}
	}
	n.files.Close()
	clear(n.devices)
	n.state.Mappings = slices.DeleteFunc(n.state.Mappings, func(m *smbMapping) bool { return !m.Persistent })
	n.off.Store(true)
	return n.saveLocked()
}

// bootLocked starts the node: disks are numbered anew, automatic services run,
// persistent iSCSI logins are restored once their service runs.
func (n *Node) bootLocked() error {
	if !n.off.Load() || n.closed {
		return errors.New("node is switched on already")
	}
	n.off.Store(false)
	n.arriving.Store(0)
	var errs []error
	for i, d := range n.disks {
		d.Number = uint32(i)
		if seen, ok := n.state.Seen[d.seenKey()]; ok {
			d.Offline, d.ReadOnly, d.Reason = seen.Offline, seen.ReadOnly, seen.Reason
		}
		n.nameDiskLocked(d)
		errs = append(errs, n.refreshPartsLocked(d))
	}
	for _, s := range n.state.Services {
		s.Pending, s.State = 0, serviceStopped
		if s.StartType <= startAutomatic {
			s.State = serviceRunning
		}
	}
	if s := n.serviceLocked(serviceISCSI); s != nil && s.State == serviceRunning {
		n.restoreLoginsLocked()
	}
	return errors.Join(append(errs, n.saveLocked())...)
}

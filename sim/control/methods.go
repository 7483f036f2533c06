package control

import (
	"context"
	"encoding/json"

	"github.com/csi-windows/csi-windows/sim"
)

// methods are the methods of sim.Controller by name.
func methods() map[string]handler {
	return map[string]handler{
		"AttachDisk":        with1(sim.Controller.AttachDisk),
		"DetachDisk":        do1(sim.Controller.DetachDisk),
		"GrowDisk":          do2(sim.Controller.GrowDisk),
		"CorruptDisk":       do3(sim.Controller.CorruptDisk),
		"Disks":             with0(sim.Controller.Disks),
		"SetSMBServer":      do1(sim.Controller.SetSMBServer),
		"RemoveSMBServer":   do1(sim.Controller.RemoveSMBServer),
		"SetISCSITarget":    do1(sim.Controller.SetISCSITarget),
		"RemoveISCSITarget": do1(sim.Controller.RemoveISCSITarget),
		"AddFault":          do1(sim.Controller.AddFault),
		"ClearFaults":       do0(sim.Controller.ClearFaults),
		"RecordCalls":       do1(sim.Controller.RecordCalls),
		"CallLog":           with0(sim.Controller.CallLog),
		"HandleCount":       with0(sim.Controller.HandleCount),
		"WriteFile":         do2(sim.Controller.WriteFile),
		"ReadFile":          with1(sim.Controller.ReadFile),
		"ListDir":           with1(sim.Controller.ListDir),
		"MakeDir":           do1(sim.Controller.MakeDir),
		"MakeLink":          do2(sim.Controller.MakeLink),
		"RemoveFile":        do1(sim.Controller.RemoveFile),
		"SwapForLink":       with2(sim.Controller.SwapForLink),
		"SetService":        do1(sim.Controller.SetService),
		"Services":          with0(sim.Controller.Services),
		"PowerCut":          do0(sim.Controller.PowerCut),
		"Boot":              do0(sim.Controller.Boot),
		"Reboot":            do0(sim.Controller.Reboot),
	}
}

// The adapters make a handler of a method: doN for one that returns an error
// alone, withN for one that returns a value too; N counts the arguments.

func do0(method func(sim.Controller, context.Context) error) handler {
	return func(ctx context.Context, node sim.Controller, args []json.RawMessage) (any, error) {
		if err := decode(args); err != nil {
			return nil, err
		}
		return nil, method(node, ctx)
	}
}

func do1[A any](method func(sim.Controller, context.Context, A) error) handler {
	return with1(func(node sim.Controller, ctx context.Context, a A) (any, error) { return nil, method(node, ctx, a) })
}

func do2[A, B any](method func(sim.Controller, context.Context, A, B) error) handler {
	return with2(func(node sim.Controller, ctx context.Context, a A, b B) (any, error) {
		return nil, method(node, ctx, a, b)
	})
}

func do3[A, B, C any](method func(sim.Controller, context.Context, A, B, C) error) handler {
	return func(ctx context.Context, node sim.Controller, args []json.RawMessage) (any, error) {
		var a A
		var b B
		var c C
		if err := decode(args, &a, &b, &c); err != nil {
			return nil, err
		}
		return nil, method(node, ctx, a, b, c)
	}
}

func with0[R any](method func(sim.Controller, context.Context) (R, error)) handler {
	return func(ctx context.Context, node sim.Controller, args []json.RawMessage) (any, error) {
		if err := decode(args); err != nil {
			return nil, err
		}
		return method(node, ctx)
	}
}

func with1[A, R any](method func(sim.Controller, context.Context, A) (R, error)) handler {
	return func(ctx context.Context, node sim.Controller, args []json.RawMessage) (any, error) {
		var a A
		if err := decode(args, &a); err != nil {
			return nil, err
		}
		return method(node, ctx, a)
	}
}

func with2[A, B, R any](method func(sim.Controller, context.Context, A, B) (R, error)) handler {
	return func(ctx context.Context, node sim.Controller, args []json.RawMessage) (any, error) {
		var a A
		var b B
		if err := decode(args, &a, &b); err != nil {
			return nil, err
		}
		return method(node, ctx, a, b)
	}
}

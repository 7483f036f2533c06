package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Installer changes services.
type Installer struct {
	Manager Manager
	Source  string // full path of the program to install, which is also the one that runs
	Events  string // name of the event source

	StartTime time.Duration // how long a service may take to start
	StopTime  time.Duration // how long it may take to stop
	Interval  time.Duration // between two looks at its state
	// Notice is told of what the user should know and is no failure.
	Notice func(format string, args ...any)
}

// removalTime bounds the removal of a service, and of a program that may still be
// coming to its end.
const removalTime = 10 * time.Second

// Install makes the service what the definition says, whether it is there or not,
// and starts it when start is set. A service that runs and already is what it
// should be goes on undisturbed. One that does not start with its new program or
// arguments gets its old ones back.
func (i *Installer) Install(ctx context.Context, d Definition, start bool) error {
	release, err := i.Manager.Lock()
	if err != nil {
		return err
	}
	defer release()
	registered, status, err := i.Manager.Lookup(d.Name)
	if errors.Is(err, ErrNotInstalled) {
		return i.installNew(ctx, d, start)
	}
	if err != nil {
		return err
	}
	return i.replace(ctx, d, registered, status, start)
}

// Upgrade replaces the program of a service and leaves its arguments alone.
func (i *Installer) Upgrade(ctx context.Context, d Definition, start bool) error {
	release, err := i.Manager.Lock()
	if err != nil {
		return err
	}
	defer release()
	registered, status, err := i.Manager.Lookup(d.Name)
	if err != nil {
		return err
	}
	// A path with spaces and no quotes would lead to some other file.
	if _, err := os.Stat(registered.Program); err != nil {
		return fmt.Errorf("the registered program is not there, so install the service anew: %w", err)
	}
	d.Program, d.Args = registered.Program, registered.Args
	return i.replace(ctx, d, registered, status, start)
}

func (i *Installer) installNew(ctx context.Context, d Definition, start bool) error {
	p, err := stage(i.Source, d.Program)
	if err != nil {
		return err
	}
	defer p.discard()
	if err := p.put(ctx, i.Interval); err != nil {
		return err
	}
	p.forget(ctx, i.Interval, i.Notice) // nobody ran what was there
	if err := i.Manager.Create(d); err != nil {
		return err
	}
	if err := i.refine(d); err != nil {
		return err
	}
	if !start {
		return nil
	}
	if err := i.start(ctx, d.Name); err != nil {
		return fmt.Errorf("the service is installed, but %w", err)
	}
	return nil
}

// replace brings a service from what is registered to what is wanted.
func (i *Installer) replace(ctx context.Context, d Definition, old Registration, status Status, start bool) error {
	p, err := stage(i.Source, d.Program)
	if err != nil {
		return err
	}
	defer p.discard()
	wasRunning := status.State != Stopped
	same := strings.EqualFold(old.Program, d.Program) && slices.Equal(old.Args, d.Args)
	if same && !p.differs {
		i.Notice("program and flags are what they should be")
	}
	if wasRunning && (p.differs || !same) {
		if err := i.stop(ctx, d.Name, i.StartTime); err != nil {
			if ctx.Err() != nil { // the user has given up, and it may stop all the same
				return i.rollBack(ctx, d, old, p, wasRunning, err)
			}
			return err
		}
	}
	if err := i.exchange(ctx, d, p, same); err != nil {
		return i.rollBack(ctx, d, old, p, wasRunning, err)
	}
	if start || wasRunning {
		if err := i.start(ctx, d.Name); err != nil {
			if !p.differs && same {
				return p.mention(err) // there is nothing to go back to
			}
			return i.rollBack(ctx, d, old, p, wasRunning, err)
		}
		p.forget(ctx, i.Interval, i.Notice)
	}
	return nil
}

// exchange puts program and registration in their places.
func (i *Installer) exchange(ctx context.Context, d Definition, p *program, same bool) error {
	if err := p.put(ctx, i.Interval); err != nil {
		return err
	}
	if !same {
		if err := i.Manager.Change(d); err != nil {
			return err
		}
	}
	return i.refine(d)
}

// rollBack restores program and registration after a failure, and says how that went.
func (i *Installer) rollBack(ctx context.Context, d Definition, old Registration, p *program, wasRunning bool, cause error) error {
	// The user may have given up; what runs the storage of a node is put back all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), i.StopTime+i.StartTime+removalTime)
	defer cancel()
	d.Program, d.Args = old.Program, old.Args
	err := i.stop(ctx, d.Name, 0)
	if err == nil {
		err = p.restore(ctx, i.Interval)
	}
	if err == nil {
		err = i.Manager.Change(d)
	}
	if err != nil {
		return fmt.Errorf("%w; the old service could not be restored: %w", cause, err)
	}
	if !wasRunning {
		return fmt.Errorf("%w; the old service is restored", cause)
	}
	if err := i.start(ctx, d.Name); err != nil {
		return fmt.Errorf("%w; the old service is restored, but %w", cause, err)
	}
	return fmt.Errorf("%w; the old service is restored and runs", cause)
}

// refine sets what a service has besides its program. It can be repeated.
func (i *Installer) refine(d Definition) error {
	refused, err := i.Manager.Refine(d)
	if err != nil {
		return err
	}
	for _, setting := range refused {
		i.Notice("this Windows does not know the setting %q of a service; the service works without it", setting)
	}
	return i.Manager.AddEventSource(i.Events)
}

// Uninstall stops and removes the service, its event source, and the program if it
// lies in the folder. What is not there is not missed. The service goes last: it is
// what tells a second try where the program is.
func (i *Installer) Uninstall(ctx context.Context, name, folder string) error {
	release, err := i.Manager.Lock()
	if err != nil {
		return err
	}
	defer release()
	registered, status, err := i.Manager.Lookup(name)
	switch {
	case errors.Is(err, ErrNotInstalled):
		i.Notice("the service %s was not installed", name)
		return i.Manager.RemoveEventSource(i.Events)
	case err != nil:
		return err
	}
	if status.State != Stopped {
		if err := i.stop(ctx, name, i.StartTime); err != nil {
			return err
		}
	}
	if strings.EqualFold(filepath.Dir(registered.Program), filepath.Clean(folder)) {
		removeProgram(ctx, i.Source, registered.Program, i.Interval, i.Notice)
	} else {
		i.Notice("its program %s is left, since it is not in %s", registered.Program, folder)
	}
	if err := i.Manager.RemoveEventSource(i.Events); err != nil {
		return err
	}
	if err := i.Manager.Delete(name); err != nil {
		return err
	}
	return i.waitGone(ctx, name)
}

// waitGone waits a moment until the manager no longer knows the service.
func (i *Installer) waitGone(ctx context.Context, name string) error {
	for deadline := time.Now().Add(removalTime); ; {
		_, _, err := i.Manager.Lookup(name)
		if errors.Is(err, ErrNotInstalled) {
			return nil
		}
		if time.Now().After(deadline) {
			i.Notice("the service %s goes as soon as nobody has it open any more, such as a list of services", name)
			return nil
		}
		if err := pause(ctx, i.Interval); err != nil {
			return err
		}
	}
}

// start starts a service and waits until it runs.
func (i *Installer) start(ctx context.Context, name string) error {
	_, status, err := i.Manager.Lookup(name)
	if err != nil {
		return err
	}
	if status.State == Stopped {
		if err := i.Manager.Start(name); err != nil {
			return fmt.Errorf("it does not start: %w%s", err, i.endingOf(name))
		}
	}
	for deadline := time.Now().Add(i.StartTime); ; {
		_, status, err := i.Manager.Lookup(name)
		switch {
		case err != nil:
			return err
		case status.State == Running:
			return nil
		case status.State == Stopped:
			return fmt.Errorf("it does not start: it ended with %s", status.Ending())
		case time.Now().After(deadline):
			return fmt.Errorf("it does not start: it is still %s after %s", status.State, i.StartTime)
		}
		if err := pause(ctx, i.Interval); err != nil {
			return fmt.Errorf("it does not start: %w", err)
		}
	}
}

// endingOf says how a service that could not be started ended, if it has left a word.
func (i *Installer) endingOf(name string) string {
	_, status, err := i.Manager.Lookup(name)
	if err != nil || status.State != Stopped || status.ExitCode == 0 {
		return ""
	}
	return " (" + status.Ending() + ")"
}

// stop stops a service and waits until it has ended. While it starts it takes no
// request to stop; one that still starts after startTime hangs, and its process is
// ended. It has no calls in flight.
func (i *Installer) stop(ctx context.Context, name string, startTime time.Duration) error {
	for deadline := time.Now().Add(startTime); ; {
		err := i.Manager.Stop(name)
		if err == nil {
			break
		}
		if _, status, lookupErr := i.Manager.Lookup(name); lookupErr != nil || status.State != Starting {
			return err
		}
		if !time.Now().Before(deadline) {
			if killErr := i.Manager.Kill(name); killErr != nil {
				return fmt.Errorf("%w; it hangs in its start: %w", err, killErr)
			}
			break
		}
		if err := pause(ctx, i.Interval); err != nil {
			return fmt.Errorf("it does not stop: %w", err)
		}
	}
	return i.waitStopped(ctx, name)
}

// waitStopped waits until a service has ended.
func (i *Installer) waitStopped(ctx context.Context, name string) error {
	for deadline := time.Now().Add(i.StopTime); ; {
		_, status, err := i.Manager.Lookup(name)
		switch {
		case err != nil:
			return err
		case status.State == Stopped:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("it does not stop: it is still %s after %s", status.State, i.StopTime)
		}
		if err := pause(ctx, i.Interval); err != nil {
			return fmt.Errorf("it does not stop: %w", err)
		}
	}
}

// Ending says how the service ended last.
func (s Status) Ending() string {
	if s.ExitCode == ServiceSpecificError {
		return fmt.Sprintf("its own exit code %d", s.ServiceExitCode)
	}
	return fmt.Sprintf("Windows error %d", s.ExitCode)
}

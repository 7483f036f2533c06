// Command podtool is every program of every pod of the test bed.
//
//	podtool pause                 waits until it is told to end
//	podtool append FILE TEXT ...  adds a line to each file, then waits
//	podtool show FILE ...         ends with the files' content as its last message
package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// messagePath is where a container leaves its last message.
// Source: Container.terminationMessagePath.
const messagePath = "/dev/termination-log"

func main() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	signal.Ignore(syscall.SIGCHLD) // processes left to the first one of a pod
	if err := run(os.Args[1:], stop); err != nil {
		_ = os.WriteFile(messagePath, []byte(err.Error()), 0o644)
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string, stop <-chan os.Signal) error {
	verb := ""
	if len(args) > 0 {
		verb, args = args[0], args[1:]
	}
	switch verb {
	case "pause":
	case "append":
		for ; len(args) >= 2; args = args[2:] {
			if err := appendLine(args[0], args[1]); err != nil {
				return err
			}
		}
	case "show":
		return show(args)
	default:
		return fmt.Errorf("verb %q is none", verb)
	}
	<-stop
	return nil
}

// appendLine adds a line to a file that is made when missing, and waits until it lasts.
func appendLine(path, line string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	_, err = file.WriteString(line + "\n")
	return errors.Join(err, file.Sync(), file.Close())
}

func show(paths []string) error {
	var all []byte
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		all = append(all, data...)
	}
	return os.WriteFile(messagePath, all, 0o644)
}

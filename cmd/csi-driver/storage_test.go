package main

import (
	"fmt"
	"log/slog"
	"testing"
)

func TestNodeTasksAreDoneByWhoWasChosen(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]string{tasksProxy: "*client.Client", tasksDriver: "*node.Tasks", tasksAuto: "*main.eitherNode"} {
		c := mustParse(t, on("linux"), "-driver=iscsi", "-node-id=n", "-socket-dir="+t.TempDir(), "-node-tasks="+flag)
		s, err := openStorage(t.Context(), c, hostProxy, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%T", s.node); got != want {
			t.Errorf("-node-tasks=%s: the tasks are done by %s, want %s", flag, got, want)
		}
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}
}

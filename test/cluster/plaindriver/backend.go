package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// volume is a volume of the back-end; its files are in the folder volumes/ID.
type volume struct {
	ID         string            `json:"id"`
	Name       string            `json:"name"`
	SizeBytes  int64             `json:"sizeBytes"`
	Zone       string            `json:"zone,omitempty"`
	Nodes      map[string]bool   `json:"nodes"` // node id to read-only
	Parameters map[string]string `json:"parameters"`
	Source     string            `json:"source,omitempty"`
}

// snapshot is a snapshot of the back-end; its files are in snapshots/ID.
type snapshot struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Volume    string    `json:"volume"`
	Group     string    `json:"group,omitempty"`
	SizeBytes int64     `json:"sizeBytes"`
	Created   time.Time `json:"created"`
}

// state is the whole back-end, as state.json holds it.
type state struct {
	Next      int                  `json:"next"`
	Volumes   map[string]*volume   `json:"volumes"`
	Snapshots map[string]*snapshot `json:"snapshots"`
	Groups    map[string]string    `json:"groups"` // id to name
}

type backend struct {
	mu    sync.Mutex
	dir   string
	state state
	logMu sync.Mutex
	calls io.Writer
}

func openBackend(dir string) (*backend, error) {
	b := &backend{dir: dir, state: state{Volumes: map[string]*volume{}, Snapshots: map[string]*snapshot{}, Groups: map[string]string{}}}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(b.file())
	if err == nil {
		err = json.Unmarshal(data, &b.state)
	}
	if err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("read the back-end: %w", err)
	}
	b.calls, err = os.OpenFile(filepath.Join(dir, "calls.jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	return b, err
}

func (b *backend) file() string { return filepath.Join(b.dir, "state.json") }

// change makes a change and keeps it, so that it outlives the driver.
func (b *backend) change(work func(*state) error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := work(&b.state); err != nil {
		return err
	}
	data, err := json.MarshalIndent(b.state, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(b.file()+".new", data, 0o644); err != nil {
		return err
	}
	return os.Rename(b.file()+".new", b.file())
}

// look reads.
func (b *backend) look(work func(*state) error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return work(&b.state)
}

func (s *state) id(kind string) string {
	s.Next++
	return fmt.Sprintf("%s-%d", kind, s.Next)
}

func (b *backend) folder(kind, id string) string { return filepath.Join(b.dir, kind, id) }

// copyFiles fills a new folder with the files of another.
func copyFiles(from, to string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	return os.CopyFS(to, os.DirFS(from))
}

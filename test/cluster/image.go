package cluster

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"testing"
)

// Image is the one image of the test bed, for pods and for what holds their name
// spaces. Its program is Tool; without arguments for it, it waits.
const Image = "cluster.test/pod:1"

// Tool is the path of the program in the image; see test/cluster/podtool.
const Tool = "/podtool"

// writeImage writes an archive with the image to a file, as docker save does. The
// container runtime loads it; nothing is pulled from anywhere.
func writeImage(t testing.TB, path string) {
	t.Helper()
	program, err := os.ReadFile(helper(t, "podtool"))
	if err != nil {
		t.Fatal(err)
	}
	archive, err := imageArchive(program)
	if err == nil {
		err = os.WriteFile(path, archive, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// entry is one file of an archive.
type entry struct {
	name string
	mode int64
	data []byte // nil for a folder
}

// imageArchive is an image whose only layer holds a program and empty folders.
func imageArchive(program []byte) ([]byte, error) {
	layer, err := archiveOf([]entry{{"tmp", 0o1777, nil}, {"etc", 0o755, nil}, {"data", 0o755, nil}, {"podtool", 0o755, program}})
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256(layer)
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": []string{Tool}, "Cmd": []string{"pause"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + hex.EncodeToString(digest[:])}},
	})
	if err != nil {
		return nil, err
	}
	manifest, err := json.Marshal([]map[string]any{{"Config": "config.json", "RepoTags": []string{Image}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return nil, err
	}
	return archiveOf([]entry{{"config.json", 0o644, config}, {"layer.tar", 0o644, layer}, {"manifest.json", 0o644, manifest}})
}

func archiveOf(entries []entry) ([]byte, error) {
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	for _, e := range entries {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: e.mode, Size: int64(len(e.data))}
		if e.data == nil {
			header.Typeflag, header.Name = tar.TypeDir, e.name+"/"
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return buffer.Bytes(), errors.Join(err)
}

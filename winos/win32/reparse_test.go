package win32

import (
	"encoding/binary"
	"reflect"
	"strings"
	"testing"
)

const testVolume = `\\?\Volume{cf468ffa-ae17-4139-a575-717547d4df09}\`

func TestC019_ReparseTargets(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		tag    uint32
		stored string // the substitute name
		rel    bool
		want   string
		volume bool
	}{
		{"mounted volume", TagMountPoint, `\??\Volume{cf468ffa-ae17-4139-a575-717547d4df09}\`, false, testVolume, true},
		{"mounted volume without final backslash", TagMountPoint, `\??\Volume{cf468ffa-ae17-4139-a575-717547d4df09}`, false, strings.TrimSuffix(testVolume, `\`), true},
		{"junction into a volume", TagMountPoint, `\??\Volume{cf468ffa-ae17-4139-a575-717547d4df09}\dir`, false, testVolume + "dir", false},
		{"junction", TagMountPoint, `\??\C:\dir`, false, `C:\dir`, false},
		{"symlink to a volume is no mount", TagSymlink, `\??\Volume{cf468ffa-ae17-4139-a575-717547d4df09}\`, false, testVolume, false},
		{"symlink", TagSymlink, `\??\C:\a b`, false, `C:\a b`, false},
		{"symlink to a share", TagSymlink, `\??\UNC\srv\share\x`, false, `\\srv\share\x`, false},
		{"relative", TagSymlink, `..\x`, true, `..\x`, false},
		{"relative to the drive", TagSymlink, `\x`, true, `\x`, false},
		{"device name", TagSymlink, `\Device\HarddiskVolume3\x`, false, `\\?\GLOBALROOT\Device\HarddiskVolume3\x`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b, err := encodeReparse(tt.tag, tt.stored, "shown")
			if err != nil {
				t.Fatal(err)
			}
			if tt.rel {
				b[16] = SymlinkRelative
			}
			got, err := DecodeReparse(b)
			want := Reparse{Tag: tt.tag, Target: tt.want, Relative: tt.rel}
			if err != nil || got != want {
				t.Fatalf("DecodeReparse = %+v, %v; want %+v", got, err, want)
			}
			if id, ok := got.VolumeID(); ok != tt.volume || ok && id != testVolume {
				t.Errorf("VolumeID = %q, %v", id, ok)
			}
		})
	}
}

func TestEncodeRoundTrip(t *testing.T) {
	t.Parallel()
	for _, target := range []string{`C:\x`, `\\srv\share\é`, `..\up`, testVolume, `\\?\GLOBALROOT\Device\x`} {
		b, err := EncodeSymlink(target)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := DecodeReparse(b); err != nil || got.Target != target {
			t.Errorf("symlink to %s reads back as %+v, %v", target, got, err)
		}
	}
	if _, err := EncodeSymlink(`C:\` + strings.Repeat("x", 8000)); err == nil {
		t.Error("names that do not fit were laid out")
	}
}

func TestDecodeReparseRefuses(t *testing.T) {
	t.Parallel()
	good, err := EncodeSymlink(`C:\x`)
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(good) {
		if n >= 4 {
			if r, err := DecodeReparse(good[:n]); err == nil {
				t.Errorf("%d of %d bytes read as %+v", n, len(good), r)
			}
		}
	}
	for _, offset := range []int{8, 10} { // start and length of the substitute name
		bad := append([]byte(nil), good...)
		binary.LittleEndian.PutUint16(bad[offset:], 0xFFFE)
		if r, err := DecodeReparse(bad); err == nil {
			t.Errorf("name past the end read as %+v", r)
		}
	}
	other := []byte{0x13, 0, 0, 0x80, 0, 0, 0, 0}
	if r, err := DecodeReparse(other); err != nil || r.Tag != 0x80000013 || r.Target != "" {
		t.Errorf("foreign tag read as %+v, %v", r, err)
	}
}

func FuzzDecodeReparse(f *testing.F) {
	for _, target := range []string{`C:\x`, `..\up`, testVolume} {
		b, err := EncodeSymlink(target)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte{3, 0, 0, 0xA0, 8, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := DecodeReparse(b)
		if err == nil && r.Tag != binary.LittleEndian.Uint32(b) {
			t.Errorf("tag %X", r.Tag)
		}
		r.VolumeID()
	})
}

func dirEntry(name string, last bool) []byte {
	b := make([]byte, 68)
	text := encodeUTF16(name)
	binary.LittleEndian.PutUint32(b[60:], uint32(len(text)))
	b = append(b, text...)
	for len(b)%8 != 0 {
		b = append(b, 0)
	}
	if !last {
		binary.LittleEndian.PutUint32(b, uint32(len(b)))
	}
	return b
}

func TestDecodeDirNames(t *testing.T) {
	t.Parallel()
	var b []byte
	for _, name := range []string{".", "..", "a", "long name é"} {
		b = append(b, dirEntry(name, false)...)
	}
	b = append(b, dirEntry("z", true)...)
	got := decodeDirNames(append(b, make([]byte, 200)...))
	if want := []string{"a", "long name é", "z"}; !reflect.DeepEqual(got, want) {
		t.Errorf("names = %q, want %q", got, want)
	}
	for n := range len(b) {
		decodeDirNames(b[:n]) // must end, whatever is missing
	}
}

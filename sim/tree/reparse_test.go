package tree

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"testing"

	"github.com/csi-windows/csi-windows/winos/win32"
)

func TestC019_ReparseBufferOfEachTag(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		link Link
		want string // hexadecimal
	}{
		"relative symbolic link": {
			Link{Tag: win32.TagSymlink, Relative: true, Substitute: "ab", Print: "c"},
			"0c0000a0" + "1200" + "0000" + "0000" + "0400" + "0400" + "0200" + "01000000" + "61006200" + "6300",
		},
		"absolute symbolic link": {
			Link{Tag: win32.TagSymlink, Substitute: `\??\C:\`, Print: `C:\`},
			"0c0000a0" + "2000" + "0000" + "0000" + "0e00" + "0e00" + "0600" + "00000000" +
				"5c003f003f005c0043003a005c00" + "43003a005c00",
		},
		"mount point": {
			Link{Tag: win32.TagMountPoint, Substitute: `\??\X`, Print: ""},
			"030000a0" + "1600" + "0000" + "0000" + "0a00" + "0c00" + "0000" + "5c003f003f005c005800" + "0000" + "0000",
		},
		"tag of another vendor": {
			Link{Tag: 0x00000042, Data: append(make([]byte, 16), 7, 8)},
			"42000000" + "0200" + "0000" + "00000000000000000000000000000000" + "0708",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := encodeReparse(&test.link)
			if hex.EncodeToString(got) != test.want {
				t.Fatalf("got  %x\nwant %s", got, test.want)
			}
			back, code := decodeReparse(got)
			if code != 0 || back.Substitute != test.link.Substitute || back.Print != test.link.Print ||
				back.Tag != test.link.Tag || back.Relative != test.link.Relative || !bytes.Equal(back.Data, test.link.Data) {
				t.Fatalf("decoded %+v, code %d", back, code)
			}
		})
	}
}

func TestMalformedReparseBuffers(t *testing.T) {
	t.Parallel()
	good := encodeReparse(&Link{Tag: win32.TagSymlink, Substitute: `\??\C:\a`, Print: `C:\a`})
	change := func(change func(b []byte) []byte) []byte { return change(bytes.Clone(good)) }
	put := func(offset int, value uint16) []byte {
		return change(func(b []byte) []byte { binary.LittleEndian.PutUint16(b[offset:], value); return b })
	}
	tests := map[string]struct {
		buffer []byte
		code   uint32
	}{
		"empty":                    {nil, errInvalidReparseData},
		"header cut":               {good[:7], errInvalidReparseData},
		"header alone":             {good[:8], errInvalidReparseData},
		"cut":                      {good[:len(good)-1], errInvalidReparseData},
		"longer than it says":      {append(bytes.Clone(good), 0), errInvalidReparseData},
		"too large":                {make([]byte, win32.ReparseBufferMaxBytes+1), errInvalidReparseData},
		"substitute beyond end":    {put(10, 0xfffe), errInvalidReparseData},
		"substitute offset beyond": {put(8, 0xfffe), errInvalidReparseData},
		"print beyond end":         {put(14, 0xfffe), errInvalidReparseData},
		"odd offset":               {put(8, 1), errInvalidReparseData},
		"odd length":               {put(10, 3), errInvalidReparseData},
		"empty substitute":         {put(10, 0), errInvalidReparseData},
		"NUL in substitute":        {put(22, 0), errInvalidReparseData},
		"reserved tag 0":           {make([]byte, 24), win32.ErrReparseTagInvalid},
		"reserved tag 1":           {append([]byte{1}, make([]byte, 23)...), win32.ErrReparseTagInvalid},
		"vendor tag without GUID":  {[]byte{0x42, 0, 0, 0, 0, 0, 0, 0}, errInvalidReparseData},
		"mount point to a relative path": {
			encodeReparse(&Link{Tag: win32.TagMountPoint, Substitute: "a"}), errInvalidReparseData},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, code := decodeReparse(test.buffer); code != test.code {
				t.Fatalf("code %d, want %d", code, test.code)
			}
		})
	}
}

func TestC095_SymlinkNamesAreLiteral(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		target, substitute string
		relative           bool
	}{
		{`C:\a&calc`, `\??\C:\a&calc`, false},
		{`c:/b %PATH%/x`, `\??\c:\b %PATH%\x`, false},
		{`\\srv\sh\x`, `\??\UNC\srv\sh\x`, false},
		{`\\?\UNC\srv\sh\x`, `\??\UNC\srv\sh\x`, false},
		{volumeD, `\??\` + volumeD[4:], false},
		{`..\x`, `..\x`, true},
		{`\x`, `\x`, true},
		{`$(calc)`, `$(calc)`, true},
	} {
		substitute, print, relative := symlinkNames(test.target)
		if substitute != test.substitute || print != test.target || relative != test.relative {
			t.Errorf("%q: %q, %q, %t", test.target, substitute, print, relative)
		}
	}
}

func FuzzDecodeReparse(f *testing.F) {
	for _, link := range []Link{
		{Tag: win32.TagSymlink, Substitute: `\??\C:\a`, Print: `C:\a`},
		{Tag: win32.TagSymlink, Relative: true, Substitute: `..\a`, Print: `..\a`},
		{Tag: win32.TagMountPoint, Substitute: `\??\` + volumeD[4:], Print: volumeD},
		{Tag: 0x42, Data: make([]byte, 20)},
	} {
		f.Add(encodeReparse(&link))
	}
	f.Fuzz(func(t *testing.T, buffer []byte) {
		link, code := decodeReparse(buffer)
		if code != 0 || utf16Len(link.Substitute)+utf16Len(link.Print) > win32.ReparseBufferMaxBytes/2-100 {
			return // names that overlap may fit one buffer and not another
		}
		again, code := decodeReparse(encodeReparse(link))
		if code != 0 || again.Substitute != link.Substitute || again.Print != link.Print || !bytes.Equal(again.Data, link.Data) {
			t.Fatalf("%+v became %+v, code %d", link, again, code)
		}
	})
}

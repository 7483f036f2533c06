package win32

import "github.com/csi-windows/csi-windows/winos/layout"

// decodeDirNames reads the names of a list of FILE_FULL_DIR_INFO, without "."
// and "..". An entry that leads nowhere ends the list. Source: winbase.h.
func decodeDirNames(b []byte) []string {
	const headerBytes = layout.FullDirFileName
	var names []string
	for len(b) >= headerBytes {
		next := layout.FullDirNextEntryOffset.Get(b)
		length := layout.FullDirFileNameLength.Get(b)
		if uint64(length) > uint64(len(b)-headerBytes) {
			return names
		}
		name := decodeUTF16(b[headerBytes : headerBytes+length])
		if name != "." && name != ".." {
			names = append(names, name)
		}
		if next == 0 || uint64(next) > uint64(len(b)) {
			return names
		}
		b = b[next:]
	}
	return names
}

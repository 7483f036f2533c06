package win32

import "encoding/binary"

const dirEntryHeaderBytes = 68

// decodeDirNames reads the names of a list of FILE_FULL_DIR_INFO, without "."
// and "..". An entry that leads nowhere ends the list. Source: winbase.h.
func decodeDirNames(b []byte) []string {
	var names []string
	for len(b) >= dirEntryHeaderBytes {
		next := binary.LittleEndian.Uint32(b)
		length := binary.LittleEndian.Uint32(b[60:])
		if uint64(length) > uint64(len(b)-dirEntryHeaderBytes) {
			return names
		}
		name := decodeUTF16(b[dirEntryHeaderBytes : dirEntryHeaderBytes+length])
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

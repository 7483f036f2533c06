// Package probe recognises data by its bytes: file systems, volume managers,
// encryption and partition tables of any operating system. It decides nothing;
// whoever is about to write asks it what is there.
package probe

// How much of a device has to be looked at, in bytes. Almost every format has
// its mark in the first or last MiB; VMFS has one just behind the first.
const (
	HeadBytes = 1<<20 + 64<<10
	TailBytes = 1 << 20
)

// Look names what the first and last bytes of a device look like, or returns ""
// when they look like nothing known. The slices may be shorter than HeadBytes
// and TailBytes; tail ends with the device's last whole 4 KiB.
func Look(head, tail []byte) string {
	for i := range signatures {
		if s := &signatures[i]; s.matches(head, tail) {
			return s.name
		}
	}
	return lookForOldRAID(tail)
}

// lookForOldRAID looks for a Linux RAID superblock of version 0.90. It lies in
// the last whole 64 KiB of the device, so its distance from the end differs.
func lookForOldRAID(tail []byte) string {
	const unit, step = 64 << 10, 4096
	for back := unit; back < 2*unit; back += step {
		superblock := part{-int64(back), "\xfc\x4e\x2b\xa9\x00\x00\x00\x00"}
		if superblock.matches(nil, tail) {
			return "Linux RAID (0.90)"
		}
	}
	return ""
}

// FirstNonZero returns the offset of the first byte that is not zero, or -1.
func FirstNonZero(b []byte) int {
	for i, c := range b {
		if c != 0 {
			return i
		}
	}
	return -1
}

// signature is one mark of a format: all of its parts have to be there.
type signature struct {
	name  string
	parts []part
}

// part is a run of bytes at one place. A negative offset counts from the end
// of the device.
type part struct {
	offset int64
	bytes  string
}

func (s *signature) matches(head, tail []byte) bool {
	for _, p := range s.parts {
		if !p.matches(head, tail) {
			return false
		}
	}
	return true
}

func (p part) matches(head, tail []byte) bool {
	from, at := head, p.offset
	if at < 0 {
		from, at = tail, int64(len(tail))+at
	}
	end := at + int64(len(p.bytes))
	return at >= 0 && end <= int64(len(from)) && string(from[at:end]) == p.bytes
}

package worlds

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/upstream"
)

// world is a node in the state before a case's call.
type world struct {
	// words are what texts of the case stand for on this node, in pairs of old and
	// new, as strings.NewReplacer takes them.
	words []string
	// check looks at the node after the call.
	check func()
}

// worlds are by what the host is asked for; see worldOf.
func worlds() map[string]func(*node) world {
	all := map[string]func(*node) world{}
	for _, group := range []map[string]func(*node) world{diskWorlds(), volumeWorlds(), filesystemWorlds(), networkWorlds(), systemWorlds()} {
		for name, arrange := range group {
			all[name] = arrange
		}
	}
	return all
}

// worldOf is the name of the world of a case: the operation the host is asked for.
func worldOf(c upstream.Case) string {
	op, arguments, _ := strings.Cut(c.Call, "(")
	if op == "Rmdir" && strings.HasSuffix(arguments, "true)") {
		return "Rmdir with force"
	}
	return op
}

// nothing is the check of a call that changes nothing.
func nothing() {}

// dataDisk attaches the disk that is number 319 in the table.
func dataDisk(n *node, change ...func(*sim.DiskSpec)) (number uint32, words []string) {
	n.Helper()
	location := "Integrated : Adapter 4 : Port 3 : Target 2 : LUN 7"
	spec := sim.DiskSpec{Bus: "SAS", Location: &location, IDs: []sim.DeviceID{{CodeSet: 2, Type: 8, ID: []byte("eui.0025")}}}
	for _, c := range change {
		c(&spec)
	}
	number = n.attach(spec)
	return number, []string{
		`"319":{"LUNID":"7"}`, fmt.Sprintf(`"%d":{"Adapter":"4","Bus":"3","Target":"2","LUNID":"7"}`, number),
		`"0","Bus":"1","Target":"2","LUNID":"3"`, `"11","Bus":"0","Target":"0","LUNID":"0"`, // the system disk
		"naa.600a", "", "S-0", "SIMSYSTEM0",
		"319", fmt.Sprint(number),
	}
}

func diskWorlds() map[string]func(*node) world {
	look := func(n *node) world {
		_, words := dataDisk(n)
		return world{words, nothing}
	}
	online := func(n *node) (uint32, []string) {
		number, words := dataDisk(n)
		n.ok(n.Client.SetDiskState(n.Context(), number, true))
		return number, words
	}
	return map[string]func(*node) world{
		"ListDiskLocations": look, "ListDiskIDs": look,
		"PartitionDisk": func(n *node) world {
			number, words := dataDisk(n)
			return world{words, func() {
				if d := n.disk(number); d.Style != "GPT" || d.Partitions != 2 || len(d.Volumes) != 1 {
					n.Errorf("after PartitionDisk the disk is %+v", d)
				}
			}}
		},
		"Rescan": func(n *node) world {
			number, words := online(n)
			n.ok(n.Control.GrowDisk(n.Context(), number, 256<<20))
			return world{words, func() {
				if size := n.disk(number).SizeBytes; size != 256<<20 {
					n.Errorf("the node sees %d bytes after the rescan", size)
				}
			}}
		},
		"GetDiskStats": func(n *node) world {
			_, words := dataDisk(n, func(s *sim.DiskSpec) { s.SizeBytes = 3 << 30 })
			return world{append(words, "1099511627776", fmt.Sprint(3<<30)), nothing}
		},
		"SetDiskState": func(n *node) world {
			number, words := dataDisk(n)
			n.ok(n.Client.SetDiskState(n.Context(), number, false))
			if !n.disk(number).Offline {
				n.Fatal("the disk is online")
			}
			return world{words, func() {
				if n.disk(number).Offline {
					n.Error("the disk is still offline")
				}
			}}
		},
		"GetDiskState": func(n *node) world {
			_, words := online(n)
			return world{words, nothing}
		},
	}
}

// volumeWords put a volume and its disk in place of those of the table.
func volumeWords(disk uint32, id string) []string {
	const both = `["\\\\?\\Volume{a}\\","\\\\?\\Volume{b}\\"]`
	return []string{
		both, `["` + quoted(id) + `"]`, `\\\\?\\Volume{a}\\`, quoted(id),
		"319", fmt.Sprint(disk), "4294967295", fmt.Sprint(disk),
	}
}

// quoted is a text as it stands inside the quotes of a JSON request.
func quoted(text string) string {
	data, _ := json.Marshal(text) // a text can always be written
	return string(data[1 : len(data)-1])
}

func volumeWorlds() map[string]func(*node) world {
	look := func(n *node) world {
		disk, id := n.mounted()
		return world{volumeWords(disk, id), nothing}
	}
	return map[string]func(*node) world{
		"ListVolumesOnDisk": look, "IsVolumeFormatted": look, "GetDiskNumberFromVolumeID": look,
		"GetVolumeIDFromTargetPath": look, "GetClosestVolumeIDFromTargetPath": look,
		"GetVolumeStats": measuredVolume, "ResizeVolume": grownVolume,
		"MountVolume": func(n *node) world {
			disk, id := n.formatted(64 << 20)
			return world{volumeWords(disk, id), func() {
				n.write(mountPath+`\f`, "below the mount")
				n.holds(id+"f", "below the mount")
			}}
		},
		"UnmountVolume": func(n *node) world {
			disk, id := n.mounted()
			return world{volumeWords(disk, id), func() {
				n.has(mountPath)
				n.powerCycle(id) // loses what was not flushed
				n.holds(id+"f", "on the volume")
			}}
		},
		"FormatVolume": func(n *node) world {
			disk, id := n.volume(64 << 20)
			return world{volumeWords(disk, id), func() {
				n.write(id+"f", "a file needs a file system")
				n.holds(id+"f", "a file needs a file system")
			}}
		},
		"WriteVolumeCache": func(n *node) world {
			disk, id := n.mounted()
			return world{volumeWords(disk, id), func() {
				n.powerCycle(id)
				n.holds(mountPath+`\f`, "on the volume")
			}}
		},
	}
}

// measuredVolume is a volume with a file on it.
func measuredVolume(n *node) world {
	disk, id := n.mounted()
	n.write(mountPath+`\big`, strings.Repeat("x", 3<<20))
	info, err := n.Client.GetVolume(n.Context(), id)
	n.ok(err)
	used := info.SizeBytes - info.FreeBytes
	if used < 3<<20 {
		n.Fatalf("%d bytes are used", used)
	}
	return world{append(volumeWords(disk, id), "2199023255552", fmt.Sprint(info.SizeBytes), "8589934592", fmt.Sprint(used)), nothing}
}

// grownVolume is a volume on a disk that has grown.
func grownVolume(n *node) world {
	const wantBytes = 5 << 30 // what the table asks for
	disk, id := n.formatted(1 << 30)
	n.write(id+"f", "before")
	n.ok(n.Control.GrowDisk(n.Context(), disk, 8<<30))
	return world{volumeWords(disk, id), func() {
		info, err := n.Client.GetVolume(n.Context(), id)
		n.ok(err)
		if info.SizeBytes > wantBytes || info.SizeBytes < wantBytes-wantBytes/50 {
			n.Errorf("the file system has %d bytes, want about %d", info.SizeBytes, int64(wantBytes))
		}
		n.holds(id+"f", "before")
	}}
}

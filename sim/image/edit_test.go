package image_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/sim/image"
)

func gptDisk(tb testing.TB, sizeBytes int64) *image.Image {
	tb.Helper()
	im := newDisk(tb, sizeBytes)
	must(tb, im.InitGPT(diskGUID))
	return im
}

func mbrDisk(tb testing.TB, sizeBytes int64) *image.Image {
	tb.Helper()
	im := newDisk(tb, sizeBytes)
	must(tb, im.InitMBR(1))
	return im
}

func TestAddPartitionPlaces(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		disk         func(testing.TB, int64) *image.Image
		diskBytes    int64
		spec         image.PartitionSpec
		offset, size int64
	}{
		"maximum, 1 MiB boundary":        {gptDisk, 5 * gib, image.PartitionSpec{UseMaximumSize: true}, 16 * mib, 5*gib - 17*mib},
		"maximum, 64 KiB boundary":       {gptDisk, gib, image.PartitionSpec{UseMaximumSize: true}, 16 * mib, gib - 16*mib - 65536},
		"maximum on MBR keeps a tail":    {mbrDisk, 5 * gib, image.PartitionSpec{UseMaximumSize: true}, mib, 5*gib - 2*mib},
		"maximum on a huge MBR disk":     {mbrDisk, 3 * tib, image.PartitionSpec{UseMaximumSize: true}, mib, 2*tib - mib},
		"size is rounded up to a sector": {gptDisk, gib, image.PartitionSpec{SizeBytes: mib + 1}, 16 * mib, mib + 512},
		"offset is taken":                {gptDisk, gib, image.PartitionSpec{SizeBytes: mib, OffsetBytes: 100 * mib}, 100 * mib, mib},
		"unaligned offset is rounded":    {gptDisk, gib, image.PartitionSpec{SizeBytes: mib, OffsetBytes: 100*mib + 1}, 100 * mib, mib},
		"rounded up when down is taken":  {gptDisk, 5 * gib, image.PartitionSpec{SizeBytes: mib, OffsetBytes: 16*mib - 1}, 16 * mib, mib},
		"offset and maximum":             {gptDisk, gib, image.PartitionSpec{UseMaximumSize: true, OffsetBytes: 512 * mib}, 512 * mib, 512*mib - 65536},
		"own alignment":                  {gptDisk, gib, image.PartitionSpec{SizeBytes: mib, AlignmentBytes: 10 * mib}, 20 * mib, mib},
		"sector alignment":               {mbrDisk, gib, image.PartitionSpec{SizeBytes: mib, AlignmentBytes: 512, OffsetBytes: mib + 512}, mib + 512, mib},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, err := c.disk(t, c.diskBytes).AddPartition(c.spec)
			must(t, err)
			if e.OffsetBytes != c.offset || e.SizeBytes != c.size {
				t.Errorf("at %d of %d bytes, want %d of %d", e.OffsetBytes, e.SizeBytes, c.offset, c.size)
			}
		})
	}
}

func TestAddPartitionRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		disk      func(testing.TB, int64) *image.Image
		diskBytes int64
		spec      image.PartitionSpec
		want      error
	}{
		"RAW disk":             {newDisk, gib, image.PartitionSpec{UseMaximumSize: true}, image.ErrNotInitialized},
		"neither size":         {gptDisk, gib, image.PartitionSpec{}, image.ErrSizeChoice},
		"both sizes":           {gptDisk, gib, image.PartitionSpec{SizeBytes: mib, UseMaximumSize: true}, image.ErrSizeChoice},
		"too large":            {gptDisk, gib, image.PartitionSpec{SizeBytes: gib}, image.ErrNoSpace},
		"absurdly large":       {gptDisk, gib, image.PartitionSpec{SizeBytes: 1<<63 - 1}, image.ErrNoSpace},
		"negative":             {gptDisk, gib, image.PartitionSpec{SizeBytes: -1}, image.ErrNoSpace},
		"not from that offset": {gptDisk, gib, image.PartitionSpec{SizeBytes: 600 * mib, OffsetBytes: 512 * mib}, image.ErrNoSpace},
		"offset in the MSR":    {gptDisk, gib, image.PartitionSpec{SizeBytes: mib, OffsetBytes: mib}, image.ErrBadOffset},
		"offset outside":       {gptDisk, gib, image.PartitionSpec{SizeBytes: mib, OffsetBytes: gib}, image.ErrBadOffset},
		"offset far outside":   {gptDisk, gib, image.PartitionSpec{SizeBytes: mib, OffsetBytes: 1<<63 - 1}, image.ErrBadOffset},
		"negative offset":      {gptDisk, gib, image.PartitionSpec{SizeBytes: mib, OffsetBytes: -mib}, image.ErrBadOffset},
		"offset not aligned as asked": {
			gptDisk, gib, image.PartitionSpec{SizeBytes: mib, OffsetBytes: 100*mib + 512, AlignmentBytes: mib}, image.ErrBadOffset,
		},
		"alignment below a sector": {gptDisk, gib, image.PartitionSpec{SizeBytes: mib, AlignmentBytes: 100}, image.ErrBadAlignment},
		"negative alignment":       {gptDisk, gib, image.PartitionSpec{SizeBytes: mib, AlignmentBytes: -512}, image.ErrBadAlignment},
		"huge alignment":           {gptDisk, gib, image.PartitionSpec{SizeBytes: mib, AlignmentBytes: 1 << 62}, image.ErrBadAlignment},
		"MBR type on GPT":          {gptDisk, gib, image.PartitionSpec{SizeBytes: mib, MBRType: image.MBRTypeIFS}, image.ErrWrongStyle},
		"active on GPT":            {gptDisk, gib, image.PartitionSpec{SizeBytes: mib, Active: true}, image.ErrWrongStyle},
		"GPT type on MBR":          {mbrDisk, gib, image.PartitionSpec{SizeBytes: mib, GPTType: image.GPTTypeBasicData}, image.ErrWrongStyle},
		"GPT type is nonsense":     {gptDisk, gib, image.PartitionSpec{SizeBytes: mib, GPTType: "{x}"}, image.ErrBadType},
		"GPT type of unused":       {gptDisk, gib, image.PartitionSpec{SizeBytes: mib, GPTType: "{00000000-0000-0000-0000-000000000000}"}, image.ErrBadType},
		"GUID is nonsense":         {gptDisk, gib, image.PartitionSpec{SizeBytes: mib, GUID: "x"}, image.ErrInvalid},
		"name too long":            {gptDisk, gib, image.PartitionSpec{SizeBytes: mib, Name: strings.Repeat("n", 37)}, image.ErrInvalid},
		"extended":                 {mbrDisk, gib, image.PartitionSpec{SizeBytes: mib, MBRType: image.MBRTypeExtended}, image.ErrBadType},
		"protective":               {mbrDisk, gib, image.PartitionSpec{SizeBytes: mib, MBRType: 0xEE}, image.ErrBadType},
		"MBR, more than 2 TiB":     {mbrDisk, 3 * tib, image.PartitionSpec{SizeBytes: 5 * tib / 2}, image.ErrBeyond2TiB},
		"MBR, from 2 TiB on":       {mbrDisk, 3 * tib, image.PartitionSpec{SizeBytes: mib, OffsetBytes: 2 * tib}, image.ErrBeyond2TiB},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			im := c.disk(t, c.diskBytes)
			before := layoutOf(t, im)
			if _, err := im.AddPartition(c.spec); !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
			if after := layoutOf(t, im); len(after.Entries) != len(before.Entries) {
				t.Error("a refusal changed the table")
			}
		})
	}
}

func TestPartitionLimit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		im    *image.Image
		limit int
	}{"MBR": {mbrDisk(t, gib), 4}, "GPT": {gptDisk(t, gib), 127}} {
		for i := range c.limit {
			if _, err := c.im.AddPartition(image.PartitionSpec{SizeBytes: mib}); err != nil {
				t.Fatalf("%s, partition %d: %v", name, i, err)
			}
		}
		if _, err := c.im.AddPartition(image.PartitionSpec{SizeBytes: mib}); !errors.Is(err, image.ErrPartitionLimit) {
			t.Errorf("%s, one too many: %v", name, err)
		}
	}
}

func TestMaximumTakesTheLargestExtentNotTheFirst(t *testing.T) {
	t.Parallel()
	im := gptDisk(t, gib)
	_, err := im.AddPartition(image.PartitionSpec{SizeBytes: mib, OffsetBytes: 200 * mib})
	must(t, err)
	e, err := im.AddPartition(image.PartitionSpec{UseMaximumSize: true})
	must(t, err)
	if e.OffsetBytes != 201*mib || e.Number != 3 {
		t.Errorf("%+v", e)
	}
	e, err = im.AddPartition(image.PartitionSpec{SizeBytes: 100 * mib})
	must(t, err)
	if e.OffsetBytes != 16*mib || e.Number != 4 { // table order, not disk order
		t.Errorf("%+v", e)
	}
	if l := layoutOf(t, im); l.LargestFreeExtentBytes != 84*mib {
		t.Errorf("largest free extent %d", l.LargestFreeExtentBytes)
	}
}

func TestDeleteAndResize(t *testing.T) {
	t.Parallel()
	for name, im := range map[string]*image.Image{"GPT": gptDisk(t, gib), "MBR": mbrDisk(t, gib)} {
		t.Run(name, func(t *testing.T) {
			var made [3]image.Entry
			for i := range made {
				e, err := im.AddPartition(image.PartitionSpec{SizeBytes: 10 * mib})
				must(t, err)
				made[i] = e
			}
			first := made[0].Number
			if err := im.ResizePartition(first, 10*mib+512); !errors.Is(err, image.ErrSize) {
				t.Errorf("resize into the neighbour: %v", err)
			}
			must(t, im.DeletePartition(made[1].Number))
			l := layoutOf(t, im)
			if e, _ := l.Partition(made[1].Number); e.OffsetBytes != made[2].OffsetBytes {
				t.Errorf("numbers did not close up: %+v", l.Entries)
			}
			if got := l.MaxPartitionBytes(first); got != 20*mib {
				t.Errorf("largest size %d", got)
			}
			must(t, im.ResizePartition(first, 20*mib+511)) // whole sectors
			must(t, im.ResizePartition(first, 5*mib))
			if e, _ := layoutOf(t, im).Partition(first); e.SizeBytes != 5*mib {
				t.Errorf("after the shrink %+v", e)
			}
			for what, err := range map[string]error{
				"delete 0": im.DeletePartition(0), "delete 99": im.DeletePartition(99), "resize 99": im.ResizePartition(99, mib),
			} {
				if !errors.Is(err, image.ErrNotFound) {
					t.Errorf("%s: %v", what, err)
				}
			}
			for _, size := range []int64{0, -1, 511, 1<<63 - 1} {
				if err := im.ResizePartition(first, size); !errors.Is(err, image.ErrSize) {
					t.Errorf("resize to %d: %v", size, err)
				}
			}
			if layoutOf(t, im).MaxPartitionBytes(99) != 0 {
				t.Error("a largest size of nothing")
			}
		})
	}
}

func TestIdentityBelongsToItsStyle(t *testing.T) {
	t.Parallel()
	gpt, mbr, raw := gptDisk(t, gib), mbrDisk(t, gib), newDisk(t, gib)
	must(t, gpt.SetDiskGUID(partGUID))
	must(t, mbr.SetSignature(77))
	if g, m := layoutOf(t, gpt), layoutOf(t, mbr); g.DiskGUID != partGUID || m.Signature != 77 {
		t.Errorf("GUID %s, signature %d", g.DiskGUID, m.Signature)
	}
	for name, c := range map[string]struct{ got, want error }{
		"GUID on MBR":         {mbr.SetDiskGUID(partGUID), image.ErrWrongStyle},
		"signature on GPT":    {gpt.SetSignature(1), image.ErrWrongStyle},
		"attributes on MBR":   {mbr.SetAttributes(1, 1), image.ErrWrongStyle},
		"GUID on RAW":         {raw.SetDiskGUID(partGUID), image.ErrNotInitialized},
		"signature on RAW":    {raw.SetSignature(1), image.ErrNotInitialized},
		"attributes on RAW":   {raw.SetAttributes(1, 1), image.ErrNotInitialized},
		"delete on RAW":       {raw.DeletePartition(1), image.ErrNotInitialized},
		"no such partition":   {gpt.SetAttributes(2, 1), image.ErrNotFound},
		"malformed GUID":      {gpt.SetDiskGUID("{}"), image.ErrInvalid},
		"backup of RAW":       {raw.MoveBackup(), nil},
		"attributes of MSR":   {gpt.SetAttributes(1, 1<<63), nil},
		"clear of a RAW disk": {raw.Clear(), nil},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
}

func TestPowerCutUndoesAnEditWhole(t *testing.T) {
	t.Parallel()
	im := gptDisk(t, gib)
	must(t, im.Flush())
	_, err := im.AddPartition(image.PartitionSpec{UseMaximumSize: true})
	must(t, err)
	im.PowerCut()
	if l := layoutOf(t, im); l.Style != image.StyleGPT || len(l.Entries) != 1 {
		t.Errorf("after the power cut: %+v", l)
	}
}

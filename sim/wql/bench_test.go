package wql_test

import (
	"testing"

	"github.com/csi-windows/csi-windows/sim/wql"
)

const benchQuery = `SELECT ObjectId, DriveLetter FROM MSFT_Volume WHERE UniqueId = "\\\\?\\Volume{cf468ffa-ae17-4139-a575-717547d4df09}\\"`

func BenchmarkParse(b *testing.B) {
	for name, query := range map[string]string{
		"Number":      `SELECT * FROM MSFT_Disk WHERE Number = 3`,
		"Volume":      benchQuery,
		"Associators": `ASSOCIATORS OF {MSFT_Disk.ObjectId="{1}\\\\HOST\\x.ObjectId=\"{g}\""} WHERE AssocClass = MSFT_DiskToPartition`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := wql.Parse(query); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkMatch(b *testing.B) {
	q, err := wql.Parse(benchQuery)
	if err != nil {
		b.Fatal(err)
	}
	var id any = `\\?\Volume{CF468FFA-AE17-4139-A575-717547D4DF09}\`
	b.ReportAllocs()
	for b.Loop() {
		if ok, err := q.Match(func(string) (any, bool) { return id, true }); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}

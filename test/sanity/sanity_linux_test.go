package sanity

import (
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"

	"github.com/csi-windows/csi-windows/test/bed"
)

// The sizes of the suite's volumes.
const (
	volumeBytes   = 1 << 30
	expandedBytes = 2 << 30
)

// callTime bounds one look at the node.
const callTime = 20 * time.Second

// official are the APIs of an official csi-proxy, for the flag -api.
const official = "disk/*,volume/*,filesystem/*,smb/*,iscsi/*,system/*"

// run is the suite against one driver.
type run struct {
	name   string
	node   *bed.Node
	config sanity.TestConfig
}

// newRun prepares the suite for the driver at an address whose node is simulated.
func newRun(name string, n *bed.Node, address string) *run {
	r := &run{name: name, node: n, config: sanity.NewTestConfig()}
	c := &r.config
	c.Address = address
	c.TargetPath = `C:\var\lib\kubelet\pods\sanity`
	c.StagingPath = `C:\var\lib\kubelet\plugins\kubernetes.io\csi\sanity`
	c.TestVolumeSize, c.TestVolumeExpandSize = volumeBytes, expandedBytes
	c.CreateTargetDir, c.CreateStagingDir = r.makeDir, r.makeDir
	c.RemoveTargetPath, c.RemoveStagingPath = r.remove, r.remove
	c.CheckPath = r.check
	return r
}

func (r *run) makeDir(path string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	return path, r.node.MakeDir(ctx, path)
}

// remove removes a folder, which must be empty: a driver that leaves something
// behind fails the suite.
func (r *run) remove(path string) error {
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	if kind, err := r.check(path); err != nil || kind == sanity.PathIsNotFound {
		return err
	}
	return r.node.RemoveFile(ctx, path)
}

// check says what is at a path of the node.
func (r *run) check(path string) (sanity.PathKind, error) {
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	path = strings.ReplaceAll(path, "/", `\`)
	cut := strings.LastIndex(path, `\`)
	names, err := r.node.ListDir(ctx, path[:cut])
	if err != nil || !slices.Contains(names, path[cut+1:]) {
		return sanity.PathIsNotFound, nil // a folder that is missing holds nothing
	}
	if _, err := r.node.ListDir(ctx, path); err == nil {
		return sanity.PathIsDir, nil
	}
	if _, err := r.node.ReadFile(ctx, path); err == nil {
		return sanity.PathIsFile, nil
	}
	return sanity.PathIsOther, nil
}

// TestSanity runs the suite once for each driver: ginkgo runs once in a process, so
// the runs are containers of one.
func TestSanity(t *testing.T) {
	programs := programs{proxy: bed.Program(t, "csi-proxy"), driver: bed.Program(t, "csi-driver")}
	runs := []*run{}
	for _, api := range []string{"", official} {
		runs = append(runs, programs.simcloud(t, api), programs.smb(t, api))
	}
	leftOut := map[string]bool{} // of every case
	for _, r := range runs {
		ginkgo.Describe(r.name, func() { sanity.GinkgoTest(&r.config) })
	}
	ginkgo.ReportAfterEach(func(report ginkgo.SpecReport) {
		leftOut[report.FullText()] = report.State.Is(types.SpecStateSkipped | types.SpecStatePending)
	})
	gomega.RegisterFailHandler(ginkgo.Fail)
	ginkgo.RunSpecs(t, "csi-sanity")
	mustBeListed(t, runs, leftOut)
}

// skipPage is the page that lists what is left out and why.
const skipPage = "../../docs/csi-sanity.md"

// row is a row of the page: all cases with that beginning are left out in the runs
// whose names begin like that, and so many they are in each.
type row struct {
	run, cases string
	number     int
}

func (r row) holds(run, text string) bool {
	return strings.HasPrefix(run+" ", r.run+" ") && strings.HasPrefix(text+" ", run+" "+r.cases+" ")
}

// rows reads the page.
func rows(t *testing.T) (found []row) {
	t.Helper()
	page, err := os.ReadFile(skipPage)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 || !strings.HasPrefix(line, "| `") {
			continue
		}
		number, err := strconv.Atoi(strings.TrimSpace(cells[3]))
		if err != nil {
			t.Fatalf("%s: %s: %v", skipPage, line, err)
		}
		for run := range strings.SplitSeq(cells[1], ",") {
			found = append(found, row{strings.Trim(run, " `"), strings.Trim(cells[2], " `"), number})
		}
	}
	return found
}

// mustBeListed compares what was left out with the page, both ways.
func mustBeListed(t *testing.T, runs []*run, leftOut map[string]bool) {
	t.Helper()
	listed := map[string]bool{}
	for _, row := range rows(t) {
		of := 0
		for _, r := range runs {
			if !strings.HasPrefix(r.name+" ", row.run+" ") {
				continue
			}
			of++
			number := 0
			for text := range leftOut {
				if row.holds(r.name, text) {
					listed[text] = true
					number++
				}
			}
			if number != row.number {
				t.Errorf("%s says that %d cases %q are left out, and %q has %d", skipPage, row.number, row.cases, r.name, number)
			}
		}
		if of == 0 {
			t.Errorf("%s tells of %q, which is no run", skipPage, row.run)
		}
	}
	for text, is := range leftOut {
		if is != listed[text] {
			t.Errorf("left out: %t; listed in %s: %t: %s", is, skipPage, listed[text], text)
		}
	}
}

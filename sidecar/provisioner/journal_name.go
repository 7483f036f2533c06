package provisioner

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// journalSuffix tells the journal from the provisioner's lease.
const journalSuffix = "-intents"

// journalName is that of the provisioner's lease with a suffix. A provisioner
// that serves one node has a journal of its own. A node's name may be so long
// that there is no room for more: the end of it is then a hash.
func journalName(driver, node string) string {
	name := strings.ReplaceAll(driver, "/", "-")
	if node != "" {
		name += "-" + node
	}
	name = strings.ToLower(name)
	if most := validation.DNS1123SubdomainMaxLength - len(journalSuffix); len(name) > most {
		sum := sha256.Sum256([]byte(name))
		hash := "-" + hex.EncodeToString(sum[:8])
		name = strings.TrimRight(name[:most-len(hash)], ".-") + hash
	}
	return name + journalSuffix
}

// Package wire is csi-proxy's protocol: every API group in every version, over
// one host.Host. Versions are data. Only the newest messages of each group are
// declared; an older method reads and writes them directly wherever its bytes are
// the same, and names a shape wherever they are not. The table in the table_*.go
// files is the only place that knows versions.
//
// A Server opens one pipe for each group and version and serves nothing but that
// API on it, so that whoever is given a pipe reaches one API.
package wire

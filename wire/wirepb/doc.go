// Package wirepb is the generated code of the messages in wire/proto. The
// messages live in a proto package of our own: names of messages do not travel
// in gRPC, and so these types can be linked beside those of csi-proxy.
package wirepb

//go:generate go -C ../../tools run ./wiregen -root ../wire/proto -package csiwindows/wire/v1 -out ../wire/wirepb

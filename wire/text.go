package wire

import "strings"

// text makes a text of the operating system fit for the wire. Windows names may
// hold half a surrogate pair and device identifiers any byte; protobuf refuses a
// message with such a text, and one odd name must not hide a whole listing.
func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// texts is text for each element.
func texts(list []string) []string {
	valid := make([]string, len(list))
	for i, s := range list {
		valid[i] = text(s)
	}
	return valid
}

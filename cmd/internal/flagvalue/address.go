package flagvalue

import (
	"fmt"
	"net"
	"strconv"
)

// CheckAddress accepts an empty address or HOST:PORT. The error names the flag, which
// is given as users write it.
func CheckAddress(flag, address string) error {
	if address == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%s: %q is not HOST:PORT", flag, address)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%s: port %q must be from 0 to 65535", flag, port)
	}
	return nil
}

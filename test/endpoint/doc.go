// Package endpoint gives tests an endpoint of their own, of the kind that drivers use
// on this system, and connections to it: a socket, on Windows a named pipe.
package endpoint

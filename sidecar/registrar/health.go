package registrar

import (
	"errors"
	"net/http"
)

// errNoSocket is upstream's text for a socket that is not there.
var errNoSocket = errors.New("registration socket does not exist")

// Health answers whether the kubelet can reach the registration socket: 200,
// or 404 when there is none, or 500.
func (r *Registrar) Health() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		code, text := http.StatusOK, "ok"
		socket := r.current.Load()
		if socket == nil {
			code, text = http.StatusNotFound, errNoSocket.Error()
		} else if socket.state(request.Context()) == fileGone {
			code, text = http.StatusNotFound, errNoSocket.Error()
		} else if err := answers(request.Context(), socket.path); err != nil {
			code, text = http.StatusInternalServerError, err.Error()
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(code)
		_, _ = w.Write([]byte(text))
	})
}

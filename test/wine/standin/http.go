package standin

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// faultMaxBytes bounds a fault as JSON.
const faultMaxBytes = 1 << 16

// freshTimeout bounds the making of a fresh node.
const freshTimeout = time.Minute

// Handler answers the control requests of the link, all of them POST:
//
//	/standin/fault       arms a Fault, given as JSON
//	/standin/reset       disarms the faults, lets hanging calls go, resets the counts
//	/standin/stats       answers with Stats as JSON
//	/standin/node/reset  puts a fresh node in the place of the present one
//
// fresh makes that node's place; see SetNode.
func (s *Server) Handler(fresh func(ctx context.Context) error) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /standin/fault", func(w http.ResponseWriter, r *http.Request) {
		var fault Fault
		decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, faultMaxBytes))
		decoder.DisallowUnknownFields()
		err := decoder.Decode(&fault)
		if err == nil {
			err = s.AddFault(fault)
		}
		reply(w, err, http.StatusBadRequest)
	})
	mux.HandleFunc("POST /standin/reset", func(w http.ResponseWriter, _ *http.Request) {
		s.Reset()
		reply(w, nil, http.StatusOK)
	})
	mux.HandleFunc("POST /standin/stats", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(s.Stats()) // the client is gone: nobody to tell
	})
	mux.HandleFunc("POST /standin/node/reset", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), freshTimeout)
		defer cancel()
		s.Reset()
		reply(w, fresh(ctx), http.StatusInternalServerError)
	})
	return mux
}

func reply(w http.ResponseWriter, err error, status int) {
	if err != nil {
		http.Error(w, err.Error(), status)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

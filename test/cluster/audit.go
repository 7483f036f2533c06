package cluster

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"time"
)

// Request is one that a user has made of the API server.
type Request struct {
	// Verb is get, list, watch, create, update, patch, delete …
	Verb string
	// Group is the API group, empty for the core one.
	Group string
	// Resource is the plural name of the kind, with the sub-resource after a slash.
	Resource string
	// Namespace is that of the object, if it has one.
	Namespace string
	// Name is that of the object, empty for lists.
	Name string
	// Agent is how the program calls itself.
	Agent string
	// Code is the HTTP status of the answer.
	Code int
	// Time is when the request arrived.
	Time time.Time
}

// auditEvent is as much of a line of the audit log as is of interest.
type auditEvent struct {
	AuditID   string `json:"auditID"`
	Verb      string `json:"verb"`
	UserAgent string `json:"userAgent"`
	User      struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
		APIGroup    string `json:"apiGroup"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	RequestReceived time.Time `json:"requestReceivedTimestamp"`
}

func (c *Cluster) auditPath() string { return c.path("audit.log") }

// Requests are those of a user so far, in the order of their answers. A service
// account is the user system:serviceaccount:NAMESPACE:NAME. A watch is one request.
func (c *Cluster) Requests(user string) []Request {
	c.t.Helper()
	requests, err := c.RequestsOf(func(name string) bool { return name == user })
	if err != nil {
		c.t.Fatal(err)
	}
	return requests
}

// RequestsOf are those of every user that is wanted.
func (c *Cluster) RequestsOf(isWanted func(user string) bool) (requests []Request, err error) {
	file, err := os.Open(c.auditPath())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	seen := map[string]bool{} // a watch has lines for its begin and its end
	for reader := bufio.NewReader(file); ; {
		line, err := reader.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return requests, nil // a line without an end is still being written
		}
		if err != nil {
			return nil, err
		}
		var event auditEvent
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			return nil, err
		}
		if isWanted(event.User.Username) && !seen[event.AuditID] {
			seen[event.AuditID] = true
			requests = append(requests, event.request())
		}
	}
}

func (e *auditEvent) request() Request {
	return Request{
		Verb: e.Verb, Group: e.ObjectRef.APIGroup, Resource: strings.TrimSuffix(e.ObjectRef.Resource+"/"+e.ObjectRef.Subresource, "/"),
		Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name, Agent: e.UserAgent, Code: e.ResponseStatus.Code, Time: e.RequestReceived,
	}
}

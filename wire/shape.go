package wire

import "google.golang.org/protobuf/proto"

// shape is how an older version writes a message that the newest version writes
// in other bytes, with the way there and back. The server upgrades requests and
// downgrades responses, the client the other way round.
type shape struct {
	new func() proto.Message
	// upgrade makes the newest message; label names the message in error texts.
	upgrade func(old proto.Message, label string) (proto.Message, error)
	// downgrade makes the old message. What the old shape cannot say is an error
	// of KindUnsupported, never left out.
	downgrade func(newest proto.Message) (proto.Message, error)
}

// reshape makes a shape from a typed pair of functions.
func reshape[O, N any, PO message[O], PN message[N]](upgrade func(old PO, label string) (PN, error), downgrade func(newest PN) (PO, error)) *shape {
	return &shape{
		new: func() proto.Message { return PO(new(O)) },
		upgrade: func(old proto.Message, label string) (proto.Message, error) {
			newest, err := upgrade(old.(PO), label)
			if err != nil {
				return nil, err
			}
			return newest, nil
		},
		downgrade: func(newest proto.Message) (proto.Message, error) {
			old, err := downgrade(newest.(PN))
			if err != nil {
				return nil, err
			}
			return old, nil
		},
	}
}

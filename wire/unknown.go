package wire

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// checkPairing refuses a message whose unread fields hold a number that the
// message declares: the sender meant another wire type, so another shape, and the
// field would silently have its zero value. Unread fields with other numbers are
// fine; that is how newer senders, and the contexts of old filesystem requests,
// look.
func checkPairing(m proto.Message) error { return checkPairingOf(m.ProtoReflect()) }

func checkPairingOf(m protoreflect.Message) error {
	if unread := m.GetUnknown(); len(unread) > 0 {
		if err := checkUnread(m.Descriptor(), unread); err != nil {
			return err
		}
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		// Requests have no maps; those are for responses.
		if field.Message() == nil || field.IsMap() || !m.Has(field) {
			continue
		}
		if err := checkPairingOfField(field, m.Get(field)); err != nil {
			return err
		}
	}
	return nil
}

// checkPairingOfField checks the message of a field, or each in its list.
func checkPairingOfField(field protoreflect.FieldDescriptor, value protoreflect.Value) error {
	if !field.IsList() {
		return checkPairingOf(value.Message())
	}
	list := value.List()
	for i := range list.Len() {
		if err := checkPairingOf(list.Get(i).Message()); err != nil {
			return err
		}
	}
	return nil
}

func checkUnread(descriptor protoreflect.MessageDescriptor, unread []byte) error {
	for len(unread) > 0 {
		number, _, size := protowire.ConsumeField(unread)
		if size < 0 {
			return protowire.ParseError(size)
		}
		if field := descriptor.Fields().ByNumber(number); field != nil {
			return fmt.Errorf("field %s (%d) has the wire type of another version", field.Name(), number)
		}
		unread = unread[size:]
	}
	return nil
}

package sidecar

import "fmt"

// SettingError is a field of a Config that cannot be accepted, or that could not be
// made use of. Whoever took the setting from somewhere else can say it in the words
// of that place, see Text.
type SettingError struct {
	// Of is whose Config it is: the component's name.
	Of string
	// Field is the field's name.
	Field string
	// Value is what the field holds; nil where that says nothing.
	Value any
	// Must is what it must be. It has a %s for each of Others, the names of other
	// fields it speaks of.
	Must   string
	Others []string
	// Cause is why it could not be made use of; then Must is empty.
	Cause error
}

// Error implements error.
func (e *SettingError) Error() string {
	return e.Of + ": " + e.Text(func(field string) string { return field })
}

// Unwrap is the cause.
func (e *SettingError) Unwrap() error { return e.Cause }

// Text is the error with the names that name gives to the fields.
func (e *SettingError) Text(name func(field string) string) string {
	text := name(e.Field)
	switch value := e.Value.(type) {
	case nil:
	case string:
		text += fmt.Sprintf(" is %q", value)
	default:
		text += fmt.Sprintf(" is %v", value)
	}
	if e.Cause != nil {
		return fmt.Sprintf("%s: %v", text, e.Cause)
	}
	others := make([]any, len(e.Others))
	for i, field := range e.Others {
		others[i] = name(field)
	}
	return text + ": must be " + fmt.Sprintf(e.Must, others...)
}

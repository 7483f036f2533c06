package cim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// ReturnError is a method that ran and returned another value than 0.
type ReturnError struct {
	Class  string
	Method string
	Code   uint32
	// Name is the documented name of the code, empty when it has none.
	Name string
	// Text is what the provider said beside it (ExtendedStatus); may be empty.
	Text string
}

// Error gives the code in the form in which its documentation gives it:
// decimal, or hexadecimal for the codes that are HRESULT-like.
func (e *ReturnError) Error() string {
	form := "%s.%s returned %d"
	if e.Code >= 1<<31 {
		form = "%s.%s returned 0x%08X"
	}
	text := fmt.Sprintf(form, e.Class, e.Method, e.Code)
	if e.Name != "" {
		text += " (" + e.Name + ")"
	}
	if e.Text != "" {
		text += ": " + e.Text
	}
	return text
}

// Call runs a method and returns its out-parameters. Another return value than
// 0 is a *ReturnError; the out-parameters come with it all the same.
func Call(ctx context.Context, s Session, namespace, class, path, method string, in Values) (Values, error) {
	result, err := s.Exec(ctx, namespace, path, method, in)
	if err != nil {
		return nil, err
	}
	if result.ReturnValue != 0 {
		return result.Out, &ReturnError{
			Class: class, Method: method, Code: result.ReturnValue, Text: extendedStatus(result.Out),
		}
	}
	return result.Out, nil
}

// extendedStatus is the text of an embedded MSFT_StorageExtendedStatus.
func extendedStatus(out Values) string {
	status, _ := Lookup(out, "ExtendedStatus").(Instance)
	return saidBy(status.Props)
}

// saidMaxBytes bounds what is repeated of a provider's text.
const saidMaxBytes = 500

// saidBy is the text of an error object, in a form that fits one line of a log: a
// provider may say anything. Source: MSFT_WmiError, CIM_Error, __ExtendedStatus.
func saidBy(object Values) string {
	for _, name := range []string{"error_WindowsErrorMessage", "Message", "Description"} {
		if text, _ := Lookup(object, name).(string); text != "" {
			return oneLine(text)
		}
	}
	return ""
}

func oneLine(text string) string {
	text = strings.ToValidUTF8(text[:min(len(text), saidMaxBytes)], "")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text))
}

// ReturnCode returns the return value of the method that err stems from; ok is
// false when err is no *ReturnError.
func ReturnCode(err error) (code uint32, ok bool) {
	var e *ReturnError
	if errors.As(err, &e) {
		return e.Code, true
	}
	return 0, false
}

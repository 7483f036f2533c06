package cim

import (
	"context"
	"errors"
	"fmt"
)

// ReturnError is a method that ran and returned another value than 0.
type ReturnError struct {
	Class  string
	Method string
	Code   uint32
	// Name is the documented name of the code, empty when it has none.
	Name string
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
		return result.Out, &ReturnError{Class: class, Method: method, Code: result.ReturnValue}
	}
	return result.Out, nil
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

package csikit_test

import (
	"testing"

	"github.com/csi-windows/csi-windows/wire/wiretest"
)

func TestMain(m *testing.M) { wiretest.Main(m) }

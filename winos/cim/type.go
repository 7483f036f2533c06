package cim

// Type is a CIM type by its number. Source: CIMTYPE_ENUMERATION, wbemcli.h.
type Type int32

// The CIM types; TypeArray is the flag of an array of the others.
const (
	TypeSint16    Type = 2
	TypeSint32    Type = 3
	TypeReal32    Type = 4
	TypeReal64    Type = 5
	TypeString    Type = 8
	TypeBoolean   Type = 11
	TypeObject    Type = 13
	TypeSint8     Type = 16
	TypeUint8     Type = 17
	TypeUint16    Type = 18
	TypeUint32    Type = 19
	TypeSint64    Type = 20
	TypeUint64    Type = 21
	TypeDatetime  Type = 101
	TypeReference Type = 102
	TypeChar16    Type = 103
	TypeArray     Type = 0x2000
)

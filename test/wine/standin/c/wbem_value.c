// CIM values: as bytes on the link, and as VARIANTs in the form that the table
// "Numbers" of the WMI SDK gives for each CIM type; see wbem.h.
#include "wbem.h"
#include <errno.h>
#include <stdlib.h>
#include <wchar.h>

// MISTYPED, in the place of the NULL mark, announces a value of another type than
// the declared one, with its own type: what a broken provider hands out.
#define MISTYPED 2
// RAW_VARIANT and the number of a VARIANT type of plain bits is such a type: there
// are some that WMI never hands out.
#define RAW_VARIANT 0x1000

WCHAR *copyText(const WCHAR *text) {
	SIZE_T size = ((SIZE_T)lstrlenW(text) + 1) * sizeof *text;
	WCHAR *copy = csi_alloc(size);
	if (copy) CopyMemory(copy, text, size);
	return copy;
}

// variantType is the type of VARIANT for a CIM type that is no array; VT_EMPTY for none.
static VARTYPE variantType(CIMTYPE type) {
	switch (type) {
	case CIM_SINT8:
	case CIM_SINT16:
	case CIM_CHAR16: return VT_I2;
	case CIM_UINT8: return VT_UI1;
	case CIM_UINT16:
	case CIM_SINT32:
	case CIM_UINT32: return VT_I4;
	case CIM_REAL32: return VT_R4;
	case CIM_REAL64: return VT_R8;
	case CIM_BOOLEAN: return VT_BOOL;
	case CIM_SINT64:
	case CIM_UINT64:
	case CIM_STRING:
	case CIM_DATETIME:
	case CIM_REFERENCE: return VT_BSTR;
	case CIM_OBJECT: return VT_UNKNOWN;
	}
	return VT_EMPTY;
}

static BOOL isText(CIMTYPE type) { return type == CIM_STRING || type == CIM_DATETIME || type == CIM_REFERENCE; }

// --- reading

static BSTR decimal(CIMTYPE type, ULONGLONG bits) {
	WCHAR text[24];
	return SysAllocString(type == CIM_SINT64 ? _i64tow((LONGLONG)bits, text, 10) : _ui64tow(bits, text, 10));
}

static BOOL readText(csi_reader *r, VARIANT *to) {
	DWORD length;
	WCHAR *text = csi_get_text(r, &length);
	if (!text) return FALSE;
	V_BSTR(to) = SysAllocStringLen(text, length);
	csi_free(text);
	return V_BSTR(to) != NULL;
}

static BOOL readNumber(csi_reader *r, CIMTYPE type, VARIANT *to) {
	ULONGLONG bits = csi_get_u64(r);
	double real;
	switch (type) {
	case CIM_REAL32:
	case CIM_REAL64:
		CopyMemory(&real, &bits, sizeof real);
		if (type == CIM_REAL64) V_R8(to) = real;
		else V_R4(to) = (float)real;
		break;
	case CIM_BOOLEAN: V_BOOL(to) = bits ? VARIANT_TRUE : VARIANT_FALSE; break;
	case CIM_SINT64:
	case CIM_UINT64: V_BSTR(to) = decimal(type, bits); return !r->failed && V_BSTR(to);
	case CIM_UINT8: V_UI1(to) = (BYTE)bits; break;
	case CIM_SINT8: V_I2(to) = (signed char)bits; break;
	case CIM_SINT16:
	case CIM_CHAR16: V_I2(to) = (SHORT)bits; break;
	case CIM_UINT16: V_I4(to) = (WORD)bits; break;
	default: V_I4(to) = (LONG)bits; break;
	}
	return !r->failed;
}

// readScalar reads one value; on FALSE there is nothing to clear.
static BOOL readScalar(csi_reader *r, CIMTYPE type, VARIANT *to) {
	VARTYPE vt = variantType(type);
	BOOL ok;
	VariantInit(to);
	if (type & RAW_VARIANT) {
		vt = (VARTYPE)(type & ~RAW_VARIANT);
		type = CIM_REAL64; // 64 bits as they are
	}
	if (vt == VT_EMPTY) return FALSE;
	if (isText(type)) ok = readText(r, to);
	else if (type == CIM_OBJECT) ok = (V_UNKNOWN(to) = (IUnknown *)readInstance(r, L"")) != NULL;
	else ok = readNumber(r, type, to);
	V_VT(to) = ok ? vt : VT_EMPTY;
	return ok;
}

// elementPointer is what SafeArrayPutElement takes: the pointer itself for BSTR
// and objects, else where the value is.
static void *elementPointer(VARIANT *v) {
	return V_VT(v) == VT_BSTR || V_VT(v) == VT_UNKNOWN ? (void *)V_BSTR(v) : (void *)&V_I4(v);
}

static BOOL readArray(csi_reader *r, CIMTYPE type, VARIANT *to) {
	DWORD smallest = isText(type) ? 4 : type == CIM_OBJECT ? 12 : 8;
	DWORD count = csi_get_count(r, smallest);
	VARTYPE vt = variantType(type);
	if (r->failed || vt == VT_EMPTY) return FALSE;
	SAFEARRAY *array = SafeArrayCreateVector(vt, 0, count);
	if (!array) return FALSE;
	for (LONG i = 0; i < (LONG)count; i++) {
		VARIANT one;
		HRESULT hr = readScalar(r, type, &one) ? SafeArrayPutElement(array, &i, elementPointer(&one)) : E_FAIL;
		VariantClear(&one);
		if (FAILED(hr)) {
			SafeArrayDestroy(array);
			return FALSE;
		}
	}
	V_VT(to) = VT_ARRAY | vt;
	V_ARRAY(to) = array;
	return TRUE;
}

// readValue reads what follows the type of a CIM value.
static BOOL readValue(csi_reader *r, CIMTYPE type, VARIANT *to) {
	BYTE null = csi_get_u8(r);
	VariantInit(to);
	V_VT(to) = VT_NULL;
	if (null == 1) return !r->failed;
	if (null == MISTYPED) {
		type = csi_get_u16(r);
		return csi_get_u8(r) == 0 && (type & CIM_FLAG_ARRAY ? readArray(r, type & ~CIM_FLAG_ARRAY, to) : readScalar(r, type, to));
	}
	return type & CIM_FLAG_ARRAY ? readArray(r, type & ~CIM_FLAG_ARRAY, to) : readScalar(r, type, to);
}

static BOOL readList(csi_reader *r, properties *all, BOOL values) {
	DWORD count = csi_get_count(r, values ? 7 : 6);
	all->count = 0;
	all->items = csi_alloc((count + 1) * sizeof *all->items);
	for (DWORD i = 0; all->items && i < count; i++) {
		property *p = &all->items[i];
		p->name = csi_get_text(r, NULL);
		p->type = csi_get_u16(r);
		V_VT(&p->value) = VT_NULL;
		all->count++;
		if (!p->name || (values && !readValue(r, p->type, &p->value))) r->failed = TRUE;
		if (r->failed) break;
	}
	if (all->items && !r->failed) return TRUE;
	freeProperties(all);
	return FALSE;
}

BOOL readProperties(csi_reader *r, properties *all) { return readList(r, all, TRUE); }
BOOL readDeclarations(csi_reader *r, properties *all) { return readList(r, all, FALSE); }

BOOL copyProperties(const properties *from, properties *to) {
	to->count = 0;
	to->items = csi_alloc((from->count + 1) * sizeof *to->items);
	for (DWORD i = 0; to->items && i < from->count; i++) {
		property *p = &to->items[i];
		p->name = copyText(from->items[i].name);
		p->type = from->items[i].type;
		V_VT(&p->value) = VT_NULL;
		to->count++;
		if (!p->name) freeProperties(to);
	}
	return to->items != NULL;
}

void freeProperties(properties *all) {
	for (DWORD i = 0; i < all->count; i++) {
		csi_free(all->items[i].name);
		VariantClear(&all->items[i].value);
	}
	csi_free(all->items);
	*all = (properties){0};
}

property *findProperty(const properties *all, const WCHAR *name) {
	for (DWORD i = 0; i < all->count; i++) {
		if (lstrcmpiW(all->items[i].name, name) == 0) return &all->items[i];
	}
	return NULL;
}

// --- checking what is put

// parseDecimal reads a 64-bit number, of which only the decimal form is allowed.
static BOOL parseDecimal(CIMTYPE type, const WCHAR *text, ULONGLONG *bits) {
	const WCHAR *digits = text && *text == '-' && type == CIM_SINT64 ? text + 1 : text;
	if (!digits || !*digits || digits[wcsspn(digits, L"0123456789")]) return FALSE;
	errno = 0;
	*bits = type == CIM_SINT64 ? (ULONGLONG)_wcstoi64(text, NULL, 10) : _wcstoui64(text, NULL, 10);
	return errno == 0;
}

static BOOL fits(CIMTYPE type, const VARIANT *v) {
	ULONGLONG bits;
	switch (type) {
	case CIM_SINT64:
	case CIM_UINT64: return parseDecimal(type, V_BSTR(v), &bits);
	case CIM_SINT8: return V_I2(v) >= -128 && V_I2(v) <= 127;
	case CIM_UINT16: return V_I4(v) >= 0 && V_I4(v) <= 0xFFFF;
	case CIM_BOOLEAN: return V_BOOL(v) == VARIANT_TRUE || V_BOOL(v) == VARIANT_FALSE;
	}
	return TRUE;
}

// element copies an element of an array into a VARIANT, which the caller clears.
static BOOL element(SAFEARRAY *array, VARTYPE vt, LONG i, VARIANT *one) {
	VariantInit(one);
	BOOL ok = SUCCEEDED(SafeArrayGetElement(array, &i, &V_I4(one)));
	V_VT(one) = ok ? vt : VT_EMPTY;
	return ok;
}

// each calls visit for every element of an array, or for the value itself, until
// one is not liked.
typedef BOOL (*visitor)(CIMTYPE type, const VARIANT *value, void *context);

static BOOL each(CIMTYPE type, const VARIANT *value, visitor visit, void *context) {
	if (!(type & CIM_FLAG_ARRAY)) return visit(type, value, context);
	LONG low, high;
	if (FAILED(SafeArrayGetLBound(V_ARRAY(value), 1, &low)) || FAILED(SafeArrayGetUBound(V_ARRAY(value), 1, &high))) return FALSE;
	for (LONG i = low; i <= high; i++) {
		VARIANT one;
		BOOL ok = element(V_ARRAY(value), V_VT(value) & ~VT_ARRAY, i, &one) && visit(type & ~CIM_FLAG_ARRAY, &one, context);
		VariantClear(&one);
		if (!ok) return FALSE;
	}
	return TRUE;
}

static BOOL visitFits(CIMTYPE type, const VARIANT *value, void *context) {
	(void)context;
	return fits(type, value);
}

HRESULT checkValue(CIMTYPE type, const VARIANT *value) {
	if (V_VT(value) == VT_NULL) return S_OK;
	VARTYPE want = variantType(type & ~CIM_FLAG_ARRAY);
	if (type & CIM_FLAG_ARRAY) want |= VT_ARRAY;
	if (V_VT(value) != want || !each(type, value, visitFits, NULL)) return WBEM_E_TYPE_MISMATCH;
	return S_OK;
}

// --- writing

static ULONGLONG bitsOf(CIMTYPE type, const VARIANT *v) {
	ULONGLONG bits = 0;
	double real;
	switch (V_VT(v)) {
	case VT_BSTR: parseDecimal(type, V_BSTR(v), &bits); break;
	case VT_BOOL: bits = V_BOOL(v) != 0; break;
	case VT_UI1: bits = V_UI1(v); break;
	case VT_I2: bits = type == CIM_CHAR16 ? (ULONGLONG)(WORD)V_I2(v) : (ULONGLONG)V_I2(v); break;
	case VT_I4: bits = type == CIM_SINT32 ? (ULONGLONG)V_I4(v) : (ULONGLONG)(ULONG)V_I4(v); break;
	case VT_R4:
	case VT_R8:
		real = V_VT(v) == VT_R4 ? V_R4(v) : V_R8(v);
		CopyMemory(&bits, &real, sizeof bits);
	}
	return bits;
}

static BOOL visitWrite(CIMTYPE type, const VARIANT *v, void *context) {
	csi_buffer *b = context;
	if (isText(type)) {
		csi_put_text(b, V_BSTR(v), (int)SysStringLen(V_BSTR(v)));
	} else if (type == CIM_OBJECT) {
		// An embedded object: class, no path, and its properties.
		const properties *all = parametersOf((IWbemClassObject *)V_UNKNOWN(v));
		csi_put_text(b, L"", 0);
		csi_put_text(b, L"", 0);
		if (all) writePut(b, all);
		else b->failed = TRUE;
	} else {
		csi_put_u64(b, bitsOf(type, v));
	}
	return TRUE;
}

static void writeValue(csi_buffer *b, CIMTYPE type, const VARIANT *value) {
	BOOL null = V_VT(value) == VT_NULL;
	csi_put_u16(b, (WORD)type);
	csi_put_u8(b, (BYTE)null);
	if (null) return;
	if (type & CIM_FLAG_ARRAY) {
		LONG low = 0, high = -1;
		SafeArrayGetLBound(V_ARRAY(value), 1, &low);
		SafeArrayGetUBound(V_ARRAY(value), 1, &high);
		csi_put_u32(b, (DWORD)(high - low + 1));
	}
	each(type, value, visitWrite, b);
}

void writePut(csi_buffer *b, const properties *all) {
	DWORD count = 0;
	for (DWORD i = 0; i < all->count; i++) count += all->items[i].put;
	csi_put_u32(b, count);
	for (DWORD i = 0; i < all->count; i++) {
		const property *p = &all->items[i];
		if (!p->put) continue;
		csi_put_text(b, p->name, -1);
		writeValue(b, p->type, &p->value);
	}
}

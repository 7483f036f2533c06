// IWbemClassObject: a class, an instance, or a list of parameters; see wbem.h.
#include "wbem.h"

enum { classGenus = 1, instanceGenus = 2 };

typedef struct {
	IWbemClassObject iface;
	LONG refs;
	DWORD thread;
	int genus;
	WCHAR *class;
	properties all; // those of the system first
	classDefinition definition;
	LONG at; // of an enumeration; -1 outside one
} object;

static HRESULT WINAPI objectQuery(IWbemClassObject *self, REFIID iid, void **out) {
	*out = NULL;
	if (!IsEqualIID(iid, &IID_IUnknown) && !IsEqualIID(iid, &IID_IWbemClassObject)) return E_NOINTERFACE;
	IWbemClassObject_AddRef(self);
	*out = self;
	return S_OK;
}

static ULONG WINAPI objectAddRef(IWbemClassObject *self) { return InterlockedIncrement(&((object *)self)->refs); }

static ULONG WINAPI objectRelease(IWbemClassObject *self) {
	object *o = (object *)self;
	ULONG refs = InterlockedDecrement(&o->refs);
	if (refs == 0) {
		freeProperties(&o->all);
		freeMethods(&o->definition);
		csi_free(o->class);
		DWORD thread = o->thread;
		csi_free(o);
		objectGone(thread);
	}
	return refs;
}

static HRESULT WINAPI objectGet(IWbemClassObject *self, LPCWSTR name, LONG flags, VARIANT *value, CIMTYPE *type, LONG *flavor) {
	if (!name || flags) return WBEM_E_INVALID_PARAMETER;
	property *p = findProperty(&((object *)self)->all, name);
	if (!p) return WBEM_E_NOT_FOUND;
	if (type) *type = p->type;
	if (flavor) *flavor = name[0] == '_' ? WBEM_FLAVOR_ORIGIN_SYSTEM : WBEM_FLAVOR_ORIGIN_LOCAL;
	if (!value) return S_OK;
	VariantInit(value);
	return VariantCopy(value, &p->value);
}

// objectPut sets a property of the type it was declared with; another one may
// be named only on a class. Source: IWbemClassObject::Put.
static HRESULT WINAPI objectPut(IWbemClassObject *self, LPCWSTR name, LONG flags, VARIANT *value, CIMTYPE type) {
	object *o = (object *)self;
	if (!name || !value || flags) return WBEM_E_INVALID_PARAMETER;
	if (o->genus == classGenus) return WBEM_E_NOT_SUPPORTED;
	if (name[0] == '_' && name[1] == '_') return WBEM_E_INVALID_PROPERTY;
	property *p = findProperty(&o->all, name);
	if (!p) return WBEM_E_NOT_FOUND;
	if (type && type != p->type) return WBEM_E_TYPE_MISMATCH;
	HRESULT hr = checkValue(p->type, value);
	if (FAILED(hr)) return hr;
	p->put = TRUE;
	return VariantCopy(&p->value, value);
}

static HRESULT WINAPI objectBegin(IWbemClassObject *self, LONG flags) {
	object *o = (object *)self;
	if (flags & ~(WBEM_FLAG_NONSYSTEM_ONLY | WBEM_FLAG_SYSTEM_ONLY | WBEM_FLAG_LOCAL_ONLY)) return WBEM_E_INVALID_PARAMETER;
	o->at = 0;
	if (flags & WBEM_FLAG_NONSYSTEM_ONLY) {
		while (o->at < (LONG)o->all.count && o->all.items[o->at].name[0] == '_') o->at++;
	}
	return S_OK;
}

static HRESULT WINAPI objectNext(IWbemClassObject *self, LONG flags, BSTR *name, VARIANT *value, CIMTYPE *type, LONG *flavor) {
	object *o = (object *)self;
	if (flags) return WBEM_E_INVALID_PARAMETER;
	if (o->at < 0) return WBEM_E_UNEXPECTED;
	if (name) *name = NULL;
	if (value) VariantInit(value);
	if (o->at >= (LONG)o->all.count) return WBEM_S_NO_MORE_DATA;
	const property *p = &o->all.items[o->at++];
	if (name) *name = SysAllocString(p->name);
	return objectGet(self, p->name, 0, value, type, flavor);
}

static HRESULT WINAPI objectEnd(IWbemClassObject *self) {
	((object *)self)->at = -1;
	return S_OK;
}

static HRESULT WINAPI objectSpawn(IWbemClassObject *self, LONG flags, IWbemClassObject **out) {
	object *o = (object *)self;
	if (!out || flags) return WBEM_E_INVALID_PARAMETER;
	*out = NULL;
	if (o->genus != classGenus) return WBEM_E_ILLEGAL_OPERATION;
	properties own = {0}, all = {0};
	for (DWORD i = 0; i < o->all.count; i++) { // the system's are made anew
		if (o->all.items[i].name[0] != '_') {
			own = (properties){&o->all.items[i], o->all.count - i};
			break;
		}
	}
	if (copyProperties(&own, &all)) *out = newObject(o->class, NULL, NULL, instanceGenus, &all);
	return *out ? S_OK : WBEM_E_OUT_OF_MEMORY;
}

// objectGetMethod works on classes alone. Source: IWbemClassObject::GetMethod.
static HRESULT WINAPI objectGetMethod(IWbemClassObject *self, LPCWSTR name, LONG flags, IWbemClassObject **in, IWbemClassObject **out) {
	object *o = (object *)self;
	if (!name || flags) return WBEM_E_INVALID_PARAMETER;
	if (o->genus != classGenus) return WBEM_E_ILLEGAL_OPERATION;
	return methodSignatures(&o->definition, name, in, out);
}

static IWbemClassObjectVtbl objectTable = {
	objectQuery, objectAddRef, objectRelease,
	.GetQualifierSet = (void *)unsupported, .Get = objectGet, .Put = objectPut, .Delete = (void *)unsupported,
	.GetNames = (void *)unsupported, .BeginEnumeration = objectBegin, .Next = objectNext, .EndEnumeration = objectEnd,
	.GetPropertyQualifierSet = (void *)unsupported, .Clone = (void *)unsupported, .GetObjectText = (void *)unsupported,
	.SpawnDerivedClass = (void *)unsupported, .SpawnInstance = objectSpawn, .CompareTo = (void *)unsupported,
	.GetPropertyOrigin = (void *)unsupported, .InheritsFrom = (void *)unsupported, .GetMethod = objectGetMethod,
	.PutMethod = (void *)unsupported, .DeleteMethod = (void *)unsupported, .BeginMethodEnumeration = (void *)unsupported,
	.NextMethod = (void *)unsupported, .EndMethodEnumeration = (void *)unsupported,
	.GetMethodQualifierSet = (void *)unsupported, .GetMethodOrigin = (void *)unsupported,
};

// --- makers

// setText makes a system property that is a text; a null pointer is NULL.
static BOOL setText(property *p, const WCHAR *name, const WCHAR *text) {
	p->name = copyText(name);
	p->type = CIM_STRING;
	V_VT(&p->value) = VT_NULL;
	if (!p->name || !text) return p->name != NULL;
	V_BSTR(&p->value) = SysAllocString(text);
	V_VT(&p->value) = VT_BSTR;
	return V_BSTR(&p->value) != NULL;
}

// fullPath is \\.\namespace:path; NULL when either is missing.
static WCHAR *fullPath(const WCHAR *space, const WCHAR *path) {
	if (!space || !*space || !path) return NULL;
	WCHAR *full = csi_alloc(((SIZE_T)lstrlenW(space) + (SIZE_T)lstrlenW(path) + 6) * sizeof *full);
	if (!full) return NULL;
	lstrcpyW(full, L"\\\\.\\");
	lstrcatW(full, space);
	lstrcatW(full, L":");
	return lstrcatW(full, path);
}

// addSystem puts the properties of the system before the others, which it takes over.
static BOOL addSystem(object *o, const WCHAR *path, const WCHAR *space, properties *take) {
	enum { systemCount = 5 };
	WCHAR *full = fullPath(space, path);
	property *items = csi_alloc((systemCount + (SIZE_T)take->count) * sizeof *items);
	if (!items) {
		csi_free(full);
		return FALSE;
	}
	BOOL ok = setText(&items[0], L"__GENUS", NULL) && setText(&items[1], L"__CLASS", o->class) &&
			  setText(&items[2], L"__RELPATH", path) && setText(&items[3], L"__NAMESPACE", space) &&
			  setText(&items[4], L"__PATH", full);
	csi_free(full);
	items[0].type = CIM_SINT32;
	V_VT(&items[0].value) = VT_I4;
	V_I4(&items[0].value) = o->genus;
	CopyMemory(items + systemCount, take->items, take->count * sizeof *items);
	o->all = (properties){items, systemCount + take->count};
	csi_free(take->items);
	*take = (properties){0};
	return ok;
}

IWbemClassObject *newObject(const WCHAR *class, const WCHAR *path, const WCHAR *space, int genus, properties *take) {
	object *o = csi_alloc(sizeof *o);
	if (!o) {
		freeProperties(take);
		return NULL;
	}
	o->iface.lpVtbl = &objectTable;
	o->refs = 1;
	o->at = -1;
	o->genus = genus;
	o->class = copyText(class);
	o->thread = objectMade();
	if (o->class && addSystem(o, path && *path ? path : NULL, space && *space ? space : NULL, take)) return &o->iface;
	freeProperties(take);
	objectRelease(&o->iface);
	return NULL;
}

IWbemClassObject *readInstance(csi_reader *r, const WCHAR *space) {
	WCHAR *class = csi_get_text(r, NULL), *path = csi_get_text(r, NULL);
	properties all;
	IWbemClassObject *made = NULL;
	if (class && path && readProperties(r, &all)) made = newObject(class, path, space, instanceGenus, &all);
	csi_free(class);
	csi_free(path);
	return made;
}

IWbemClassObject *readClass(csi_reader *r, const WCHAR *space) {
	WCHAR *class = csi_get_text(r, NULL);
	classDefinition definition = {0};
	properties all;
	IWbemClassObject *made = NULL;
	if (class && readMethods(r, &definition) && readDeclarations(r, &all)) made = newObject(class, class, space, classGenus, &all);
	if (made) ((object *)made)->definition = definition;
	else freeMethods(&definition);
	csi_free(class);
	return made;
}

const properties *parametersOf(IWbemClassObject *candidate) {
	return candidate && candidate->lpVtbl == &objectTable ? &((object *)candidate)->all : NULL;
}

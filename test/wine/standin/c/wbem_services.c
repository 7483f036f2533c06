// IWbemServices: classes, instances, queries and methods of one namespace; see wbem.h.
#include "wbem.h"
#include <wchar.h>

// verdict remembers whether a class is the node's or Wine's.
typedef struct verdict {
	struct verdict *next;
	BOOL wine;
	WCHAR class[];
} verdict;

typedef struct {
	IWbemServices iface;
	IClientSecurity security;
	LONG refs;
	DWORD thread;
	WCHAR *space;
	IWbemServices *wine; // NULL when the namespace is the node's alone
	SRWLOCK lock;        // of the verdicts
	verdict *verdicts;
} services;

static services *ofSecurity(IClientSecurity *self) { return CONTAINING_RECORD(self, services, security); }

static HRESULT WINAPI servicesQuery(IWbemServices *self, REFIID iid, void **out) {
	services *s = (services *)self;
	*out = NULL;
	if (IsEqualIID(iid, &IID_IClientSecurity)) *out = &s->security;
	else if (IsEqualIID(iid, &IID_IUnknown) || IsEqualIID(iid, &IID_IWbemServices)) *out = self;
	else return E_NOINTERFACE;
	IWbemServices_AddRef(self);
	return S_OK;
}

static ULONG WINAPI servicesAddRef(IWbemServices *self) { return InterlockedIncrement(&((services *)self)->refs); }

static ULONG WINAPI servicesRelease(IWbemServices *self) {
	services *s = (services *)self;
	ULONG refs = InterlockedDecrement(&s->refs);
	if (refs > 0) return refs;
	while (s->verdicts) {
		verdict *v = s->verdicts;
		s->verdicts = v->next;
		csi_free(v);
	}
	if (s->wine) IWbemServices_Release(s->wine);
	csi_free(s->space);
	DWORD thread = s->thread;
	csi_free(s);
	objectGone(thread);
	return 0;
}

// --- whose class it is

// askClass asks the node for a class; out may be NULL.
static HRESULT askClass(services *s, const WCHAR *class, IWbemClassObject **out) {
	csi_buffer request = {0};
	csi_answer answer;
	csi_put_text(&request, s->space, -1);
	csi_put_text(&request, class, -1);
	if (!csi_call(CSI_CLASS, &request, &answer)) return lost(&answer);
	HRESULT hr = answer.status == S_OK ? S_OK : failedAnswer(&answer, L"GetObject");
	if (hr == S_OK && out && !(*out = readClass(&answer.body, s->space))) hr = damaged();
	csi_answer_free(&answer);
	return hr;
}

static BOOL known(services *s, const WCHAR *class, BOOL *wine) {
	BOOL found = FALSE;
	AcquireSRWLockShared(&s->lock);
	for (verdict *v = s->verdicts; v && !found; v = v->next) {
		found = lstrcmpiW(v->class, class) == 0;
		if (found) *wine = v->wine;
	}
	ReleaseSRWLockShared(&s->lock);
	return found;
}

static void remember(services *s, const WCHAR *class, BOOL wine) {
	SIZE_T size = ((SIZE_T)lstrlenW(class) + 1) * sizeof *class;
	verdict *v = csi_alloc(sizeof *v + size);
	if (!v) return;
	v->wine = wine;
	CopyMemory(v->class, class, size);
	AcquireSRWLockExclusive(&s->lock);
	v->next = s->verdicts;
	s->verdicts = v;
	ReleaseSRWLockExclusive(&s->lock);
}

// isWines reports whether Wine's provider answers for a class: in a namespace that
// both have, for those that the node does not know.
static HRESULT isWines(services *s, const WCHAR *class, BOOL *wine) {
	*wine = FALSE;
	if (!s->wine || known(s, class, wine)) return S_OK;
	HRESULT hr = askClass(s, class, NULL);
	*wine = hr == (HRESULT)WBEM_E_INVALID_CLASS || hr == (HRESULT)WBEM_E_NOT_FOUND;
	if (hr != S_OK && !*wine) return hr;
	remember(s, class, *wine);
	return S_OK;
}

enum { classMax = 128 };

// word copies the beginning of a text up to one of the characters of `end`.
static void word(const WCHAR *text, const WCHAR *end, WCHAR out[classMax]) {
	SIZE_T length = wcscspn(text, end);
	lstrcpynW(out, text, (int)(length < classMax ? length + 1 : classMax));
}

// withoutNamespace skips the "\\.\root\cimv2:" of a full object path.
static const WCHAR *withoutNamespace(const WCHAR *path) {
	const WCHAR *colon = path[0] == '\\' && path[1] == '\\' ? wcschr(path, ':') : NULL;
	return colon ? colon + 1 : path;
}

// queriedClass is the class after FROM, or that of the object after ASSOCIATORS OF.
static void queriedClass(const WCHAR *query, WCHAR out[classMax]) {
	const WCHAR *brace = wcschr(query, '{');
	out[0] = 0;
	if (_wcsnicmp(query, L"ASSOCIATORS", 11) == 0 && brace) {
		word(withoutNamespace(brace + 1), L".=}", out);
		return;
	}
	for (const WCHAR *at = query; *at; at++) {
		if (_wcsnicmp(at, L" from ", 6) == 0) {
			word(at + 6 + wcsspn(at + 6, L" "), L" ", out);
			return;
		}
	}
}

// --- queries

static HRESULT WINAPI servicesExecQuery(IWbemServices *self, const BSTR language, const BSTR query, LONG flags,
										IWbemContext *context, IEnumWbemClassObject **out) {
	services *s = (services *)self;
	if (!language || !query || !out) return WBEM_E_INVALID_PARAMETER;
	*out = NULL;
	if (lstrcmpiW(language, L"WQL") != 0) return WBEM_E_INVALID_QUERY_TYPE;
	WCHAR class[classMax];
	BOOL wine;
	queriedClass(query, class);
	HRESULT hr = isWines(s, class, &wine);
	if (FAILED(hr)) return hr;
	if (wine) return IWbemServices_ExecQuery(s->wine, language, query, flags, context, out);
	csi_buffer request = {0};
	csi_pending pending;
	csi_put_text(&request, s->space, -1);
	csi_put_text(&request, query, (int)SysStringLen(query));
	if (!csi_begin(CSI_QUERY, &request, &pending)) return lost(&(csi_answer){.status = CSI_UNREACHABLE});
	IEnumWbemClassObject *made = newEnumerator(&pending, s->space);
	if (!made) return WBEM_E_OUT_OF_MEMORY;
	if (!(flags & WBEM_FLAG_RETURN_IMMEDIATELY) && FAILED(hr = settle(made))) {
		IEnumWbemClassObject_Release(made);
		return hr;
	}
	*out = made;
	return S_OK;
}

static HRESULT queryText(IWbemServices *self, const WCHAR *text, LONG flags, IEnumWbemClassObject **out) {
	BSTR language = SysAllocString(L"WQL"), query = SysAllocString(text);
	HRESULT hr = language && query ? IWbemServices_ExecQuery(self, language, query, flags, NULL, out) : WBEM_E_OUT_OF_MEMORY;
	SysFreeString(language);
	SysFreeString(query);
	return hr;
}

static HRESULT selectAll(IWbemServices *self, const WCHAR *class, LONG flags, IEnumWbemClassObject **out) {
	WCHAR query[classMax + 16] = L"SELECT * FROM ";
	if (lstrlenW(class) >= classMax) return WBEM_E_INVALID_CLASS;
	return queryText(self, lstrcatW(query, class), flags, out);
}

static HRESULT WINAPI servicesEnum(IWbemServices *self, const BSTR class, LONG flags, IWbemContext *context, IEnumWbemClassObject **out) {
	(void)context;
	if (!class || !out) return WBEM_E_INVALID_PARAMETER;
	return selectAll(self, class, flags, out);
}

// --- objects

// isAt reports whether an instance is at a path: Class.Key="value", or Class="value"
// for a class with one key.
static BOOL isAt(IWbemClassObject *instance, const WCHAR *path) {
	VARIANT own;
	BOOL at = FALSE;
	if (FAILED(IWbemClassObject_Get(instance, L"__RELPATH", 0, &own, NULL, NULL))) return FALSE;
	if (V_VT(&own) == VT_BSTR) {
		const WCHAR *value = wcschr(V_BSTR(&own), '='), *wanted = path + wcscspn(path, L".=");
		at = lstrcmpiW(V_BSTR(&own), path) == 0 || (*wanted == '=' && value && lstrcmpiW(value, wanted) == 0);
	}
	VariantClear(&own);
	return at;
}

static HRESULT getInstance(services *s, const WCHAR *class, const WCHAR *path, IWbemClassObject **out) {
	IEnumWbemClassObject *all;
	HRESULT hr = selectAll(&s->iface, class, 0, &all);
	if (FAILED(hr)) return hr;
	for (;;) {
		IWbemClassObject *one;
		ULONG returned;
		hr = IEnumWbemClassObject_Next(all, WBEM_INFINITE, 1, &one, &returned);
		if (hr != WBEM_S_NO_ERROR) break;
		if (isAt(one, path)) {
			*out = one;
			break;
		}
		IWbemClassObject_Release(one);
	}
	IEnumWbemClassObject_Release(all);
	return hr == WBEM_S_FALSE ? (HRESULT)WBEM_E_NOT_FOUND : hr;
}

static HRESULT WINAPI servicesGetObject(IWbemServices *self, const BSTR path, LONG flags, IWbemContext *context,
										IWbemClassObject **out, IWbemCallResult **result) {
	services *s = (services *)self;
	if (!path || !*path || !out || result) return WBEM_E_INVALID_PARAMETER;
	*out = NULL;
	WCHAR class[classMax];
	BOOL wine;
	const WCHAR *relative = withoutNamespace(path);
	word(relative, L".=", class);
	HRESULT hr = isWines(s, class, &wine);
	if (FAILED(hr)) return hr;
	if (wine) return IWbemServices_GetObject(s->wine, path, flags, context, out, result);
	if (lstrcmpiW(relative, class) == 0) {
		hr = askClass(s, class, out);
		return hr == (HRESULT)WBEM_E_INVALID_CLASS ? (HRESULT)WBEM_E_NOT_FOUND : hr; // as GetObject says it
	}
	return getInstance(s, class, relative, out);
}

// --- methods

static HRESULT readOut(csi_answer *answer, IWbemClassObject **out) {
	properties all;
	if (!csi_get_u8(&answer->body)) return answer->body.failed ? damaged() : S_OK;
	if (!readProperties(&answer->body, &all)) return damaged();
	IWbemClassObject *made = newObject(L"__PARAMETERS", NULL, NULL, 2, &all);
	if (!made) return WBEM_E_OUT_OF_MEMORY;
	if (out) *out = made;
	else IWbemClassObject_Release(made);
	return S_OK;
}

static HRESULT WINAPI servicesExecMethod(IWbemServices *self, const BSTR path, const BSTR name, LONG flags, IWbemContext *context,
										 IWbemClassObject *in, IWbemClassObject **out, IWbemCallResult **result) {
	services *s = (services *)self;
	if (!path || !name || result) return WBEM_E_INVALID_PARAMETER;
	if (out) *out = NULL;
	WCHAR class[classMax];
	BOOL wine;
	const WCHAR *relative = withoutNamespace(path);
	word(relative, L".=", class);
	HRESULT hr = isWines(s, class, &wine);
	if (FAILED(hr)) return hr;
	if (wine) return IWbemServices_ExecMethod(s->wine, path, name, flags, context, in, out, result);
	const properties none = {0}, *parameters = in ? parametersOf(in) : &none;
	if (!parameters) return WBEM_E_INVALID_METHOD_PARAMETERS;
	csi_buffer request = {0};
	csi_answer answer;
	csi_put_text(&request, s->space, -1);
	csi_put_text(&request, relative, -1);
	csi_put_text(&request, name, -1);
	writePut(&request, parameters);
	if (!csi_call(CSI_EXEC, &request, &answer)) return lost(&answer);
	hr = answer.status == S_OK ? readOut(&answer, out) : failedAnswer(&answer, L"ExecMethod");
	csi_answer_free(&answer);
	return hr;
}

static IWbemServicesVtbl servicesTable = {
	servicesQuery, servicesAddRef, servicesRelease,
	.OpenNamespace = (void *)unsupported, .CancelAsyncCall = (void *)unsupported, .QueryObjectSink = (void *)unsupported,
	.GetObject = servicesGetObject, .GetObjectAsync = (void *)unsupported, .PutClass = (void *)unsupported,
	.PutClassAsync = (void *)unsupported, .DeleteClass = (void *)unsupported, .DeleteClassAsync = (void *)unsupported,
	.CreateClassEnum = (void *)unsupported, .CreateClassEnumAsync = (void *)unsupported, .PutInstance = (void *)unsupported,
	.PutInstanceAsync = (void *)unsupported, .DeleteInstance = (void *)unsupported, .DeleteInstanceAsync = (void *)unsupported,
	.CreateInstanceEnum = servicesEnum, .CreateInstanceEnumAsync = (void *)unsupported, .ExecQuery = servicesExecQuery,
	.ExecQueryAsync = (void *)unsupported, .ExecNotificationQuery = (void *)unsupported,
	.ExecNotificationQueryAsync = (void *)unsupported, .ExecMethod = servicesExecMethod, .ExecMethodAsync = (void *)unsupported,
};

// --- IClientSecurity: a proxy can be told how to call, which means nothing here

static HRESULT WINAPI securityQuery(IClientSecurity *self, REFIID iid, void **out) {
	return servicesQuery(&ofSecurity(self)->iface, iid, out);
}
static ULONG WINAPI securityAddRef(IClientSecurity *self) { return servicesAddRef(&ofSecurity(self)->iface); }
static ULONG WINAPI securityRelease(IClientSecurity *self) { return servicesRelease(&ofSecurity(self)->iface); }

static HRESULT WINAPI securitySet(IClientSecurity *self, IUnknown *proxy, DWORD authentication, DWORD authorization, OLECHAR *principal,
								  DWORD level, DWORD impersonation, void *identity, DWORD capabilities) {
	(void)self, (void)proxy, (void)authentication, (void)authorization, (void)principal, (void)identity, (void)capabilities;
	// Providers act as their caller, so a lower level of impersonation is of no use.
	return level == RPC_C_AUTHN_LEVEL_PKT_PRIVACY && impersonation == RPC_C_IMP_LEVEL_IMPERSONATE ? S_OK : E_ACCESSDENIED;
}

static IClientSecurityVtbl securityTable = {
	securityQuery, securityAddRef, securityRelease,
	.QueryBlanket = (void *)unsupported, .SetBlanket = securitySet, .CopyProxy = (void *)unsupported,
};

IWbemServices *newServices(const WCHAR *space, IWbemServices *wine) {
	services *s = csi_alloc(sizeof *s);
	WCHAR *copied = copyText(space);
	if (!s || !copied) {
		if (wine) IWbemServices_Release(wine);
		csi_free(s);
		csi_free(copied);
		return NULL;
	}
	s->iface.lpVtbl = &servicesTable;
	s->security.lpVtbl = &securityTable;
	s->refs = 1;
	s->space = copied;
	s->wine = wine;
	s->thread = objectMade();
	return &s->iface;
}

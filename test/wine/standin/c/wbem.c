// The library's entry points, its class object and IWbemLocator; see wbem.h.
#include <initguid.h>
#include "wbem.h"

static LONG live;
static LONG threadFaults;

// inApartment reports whether the calling thread itself has entered the
// multithreaded apartment, instead of profiting from another thread's.
static BOOL inApartment(void) {
	APTTYPE type;
	APTTYPEQUALIFIER qualifier;
	return CoGetApartmentType(&type, &qualifier) == S_OK && type == APTTYPE_MTA && qualifier == APTTYPEQUALIFIER_NONE;
}

DWORD objectMade(void) {
	InterlockedIncrement(&live);
	if (!inApartment()) InterlockedIncrement(&threadFaults);
	return GetCurrentThreadId();
}

void objectGone(DWORD madeOn) {
	if (madeOn != GetCurrentThreadId() || !inApartment()) InterlockedIncrement(&threadFaults);
	InterlockedDecrement(&live);
}

// CsiWbemLiveObjects lets a test see objects that nobody released.
__declspec(dllexport) LONG WINAPI CsiWbemLiveObjects(void) { return live; }

// CsiWbemThreadFaults counts objects that were made or let go of on a thread outside
// the apartment, or let go of on another thread than the one they were made on.
__declspec(dllexport) LONG WINAPI CsiWbemThreadFaults(void) { return threadFaults; }

HRESULT WINAPI unsupported(void *self) {
	(void)self;
	return WBEM_E_NOT_SUPPORTED;
}

// --- Wine's own provider

typedef HRESULT(WINAPI *getClassObjectFn)(REFCLSID, REFIID, void **);

// wineClass returns the class object of Wine's provider, whose registration
// this library has taken.
static HRESULT wineClass(REFCLSID class, REFIID iid, void **out) {
	HMODULE library = LoadLibraryW(L"C:\\windows\\system32\\wbem\\wbemprox.dll");
	if (!library) return HRESULT_FROM_WIN32(GetLastError());
	getClassObjectFn get = (getClassObjectFn)(void *)GetProcAddress(library, "DllGetClassObject");
	return get ? get(class, iid, out) : CLASS_E_CLASSNOTAVAILABLE;
}

static HRESULT wineLocator(IWbemLocator **out) {
	IClassFactory *factory;
	HRESULT hr = wineClass(&CLSID_WbemLocator, &IID_IClassFactory, (void **)&factory);
	if (FAILED(hr)) return hr;
	hr = IClassFactory_CreateInstance(factory, NULL, &IID_IWbemLocator, (void **)out);
	IClassFactory_Release(factory);
	return hr;
}

static HRESULT wineConnect(const BSTR space, IWbemServices **out) {
	IWbemLocator *locator;
	HRESULT hr = wineLocator(&locator);
	if (FAILED(hr)) return hr;
	hr = IWbemLocator_ConnectServer(locator, space, NULL, NULL, NULL, 0, NULL, NULL, out);
	IWbemLocator_Release(locator);
	return hr;
}

// --- IWbemLocator

typedef struct {
	IWbemLocator iface;
	LONG refs;
	DWORD thread;
} locator;

static HRESULT WINAPI locatorQuery(IWbemLocator *self, REFIID iid, void **out) {
	*out = NULL;
	if (!IsEqualIID(iid, &IID_IUnknown) && !IsEqualIID(iid, &IID_IWbemLocator)) return E_NOINTERFACE;
	IWbemLocator_AddRef(self);
	*out = self;
	return S_OK;
}

static ULONG WINAPI locatorAddRef(IWbemLocator *self) { return InterlockedIncrement(&((locator *)self)->refs); }

static ULONG WINAPI locatorRelease(IWbemLocator *self) {
	ULONG refs = InterlockedDecrement(&((locator *)self)->refs);
	if (refs == 0) {
		DWORD thread = ((locator *)self)->thread;
		csi_free(self);
		objectGone(thread);
	}
	return refs;
}

// withoutMachine skips the "\\.\" of a full namespace path.
static const WCHAR *withoutMachine(const WCHAR *space) {
	if (space[0] == '\\' && space[1] == '\\' && space[2] == '.' && space[3] == '\\') return space + 4;
	return space;
}

// locatorConnect asks the node whether it has the namespace. The ones it lacks are
// Wine's; cimv2 is shared.
static HRESULT WINAPI locatorConnect(IWbemLocator *self, const BSTR space, const BSTR user, const BSTR password,
									 const BSTR locale, LONG flags, const BSTR authority, IWbemContext *context,
									 IWbemServices **out) {
	(void)self, (void)locale, (void)flags, (void)authority, (void)context;
	if (!space || !out) return WBEM_E_INVALID_PARAMETER;
	*out = NULL;
	if (user || password) return WBEM_E_LOCAL_CREDENTIALS;
	const WCHAR *name = withoutMachine(space);
	csi_buffer request = {0};
	csi_answer answer;
	csi_put_text(&request, name, -1);
	if (!csi_call(CSI_NAMESPACE, &request, &answer)) return lost(&answer);
	HRESULT hr = (HRESULT)answer.status;
	if (hr == (HRESULT)WBEM_E_INVALID_NAMESPACE) {
		csi_answer_free(&answer);
		return wineConnect(space, out);
	}
	if (hr != S_OK) hr = failedAnswer(&answer, L"ConnectServer");
	csi_answer_free(&answer);
	if (hr != S_OK) return hr;
	IWbemServices *wine = NULL;
	if (lstrcmpiW(name, L"root\\cimv2") == 0 && FAILED(hr = wineConnect(space, &wine))) return hr;
	*out = newServices(name, wine);
	return *out ? S_OK : WBEM_E_OUT_OF_MEMORY;
}

static IWbemLocatorVtbl locatorTable = {locatorQuery, locatorAddRef, locatorRelease, locatorConnect};

// --- IClassFactory, one for the library's whole life

static HRESULT WINAPI factoryQuery(IClassFactory *self, REFIID iid, void **out) {
	*out = NULL;
	if (!IsEqualIID(iid, &IID_IUnknown) && !IsEqualIID(iid, &IID_IClassFactory)) return E_NOINTERFACE;
	*out = self;
	return S_OK;
}

static ULONG WINAPI factoryCount(IClassFactory *self) {
	(void)self;
	return 1;
}

static HRESULT WINAPI factoryCreate(IClassFactory *self, IUnknown *outer, REFIID iid, void **out) {
	(void)self;
	*out = NULL;
	if (outer) return CLASS_E_NOAGGREGATION;
	locator *l = csi_alloc(sizeof *l);
	if (!l) return E_OUTOFMEMORY;
	l->iface.lpVtbl = &locatorTable;
	l->refs = 1;
	l->thread = objectMade();
	HRESULT hr = IWbemLocator_QueryInterface(&l->iface, iid, out);
	IWbemLocator_Release(&l->iface);
	return hr;
}

static HRESULT WINAPI factoryLock(IClassFactory *self, BOOL on) {
	(void)self, (void)on;
	return S_OK;
}

static IClassFactoryVtbl factoryTable = {factoryQuery, factoryCount, factoryCount, factoryCreate, factoryLock};
static IClassFactory factory = {&factoryTable};

// --- entry points

HRESULT WINAPI DllGetClassObject(REFCLSID class, REFIID iid, void **out) {
	*out = NULL;
	if (!IsEqualCLSID(class, &CLSID_WbemLocator)) return CLASS_E_CLASSNOTAVAILABLE;
	if (!csi_active()) return wineClass(class, iid, out);
	return IClassFactory_QueryInterface(&factory, iid, out);
}

HRESULT WINAPI DllCanUnloadNow(void) { return live == 0 ? S_OK : S_FALSE; }

BOOL WINAPI DllMain(HINSTANCE self, DWORD reason, LPVOID ending) {
	(void)self;
	if (reason == DLL_PROCESS_DETACH && !ending) csi_disconnect();
	return TRUE;
}

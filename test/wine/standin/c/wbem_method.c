// The methods of a class and their signatures; see wbem.h.
#include "wbem.h"

BOOL readMethods(csi_reader *r, classDefinition *definition) {
	DWORD count = csi_get_count(r, 9);
	definition->count = 0;
	definition->methods = csi_alloc((count + 1) * sizeof *definition->methods);
	for (DWORD i = 0; definition->methods && i < count; i++) {
		method *m = &definition->methods[i];
		m->name = csi_get_text(r, NULL);
		m->hasIn = csi_get_u8(r) != 0;
		definition->count++;
		if (!m->name || !readDeclarations(r, &m->in)) r->failed = TRUE;
		if (r->failed) break;
	}
	if (definition->methods && !r->failed) return TRUE;
	freeMethods(definition);
	return FALSE;
}

void freeMethods(classDefinition *definition) {
	for (DWORD i = 0; i < definition->count; i++) {
		csi_free(definition->methods[i].name);
		freeProperties(&definition->methods[i].in);
	}
	csi_free(definition->methods);
	*definition = (classDefinition){0};
}

static IWbemClassObject *parametersClass(const properties *declared) {
	properties all;
	return copyProperties(declared, &all) ? newObject(L"__PARAMETERS", NULL, NULL, 1, &all) : NULL;
}

// methodSignatures leaves the in-signature NULL for a method without in-parameters.
// Of the out-signature only the return value is known.
HRESULT methodSignatures(const classDefinition *definition, const WCHAR *name, IWbemClassObject **in, IWbemClassObject **out) {
	static property returnValue = {L"ReturnValue", CIM_UINT32, FALSE, {{{VT_NULL, 0, 0, 0, {0}}}}};
	static const properties returned = {&returnValue, 1};
	if (in) *in = NULL;
	if (out) *out = NULL;
	for (DWORD i = 0; i < definition->count; i++) {
		const method *m = &definition->methods[i];
		if (lstrcmpiW(m->name, name) != 0) continue;
		if (in && m->hasIn && !(*in = parametersClass(&m->in))) return WBEM_E_OUT_OF_MEMORY;
		if (out && !(*out = parametersClass(&returned))) {
			if (in && *in) IWbemClassObject_Release(*in);
			return WBEM_E_OUT_OF_MEMORY;
		}
		return S_OK;
	}
	return WBEM_E_NOT_FOUND;
}

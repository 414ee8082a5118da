package offline

import (
	"context"
	"fmt"
	"io/fs"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/deploy/crd"
)

// Definition is one kind with its rules, compiled.
type Definition struct {
	Kind       schema.GroupVersionKind
	Namespaced bool

	plural     string
	structural *structuralschema.Structural
	schema     schemavalidation.SchemaValidator
	cel        *cel.Validator
}

// Definitions compiles the embedded definitions, once.
var Definitions = sync.OnceValues(func() (map[schema.GroupKind]*Definition, error) {
	files, err := fs.Glob(crd.Files, "*.yaml")
	if err != nil {
		return nil, err
	}
	out := make(map[schema.GroupKind]*Definition, len(files))
	for _, name := range files {
		text, err := crd.Files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		d, err := compile(text)
		if err != nil {
			return nil, fmt.Errorf("definition %s: %w", name, err)
		}
		out[d.Kind.GroupKind()] = d
	}
	return out, nil
})

func compile(text []byte) (*Definition, error) {
	var c apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &c); err != nil {
		return nil, err
	}
	if n := len(c.Spec.Versions); n != 1 {
		return nil, fmt.Errorf("it has %d versions, want 1", n)
	}
	v := c.Spec.Versions[0]
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, &props, nil); err != nil {
		return nil, err
	}
	structural, err := structuralschema.NewStructural(&props)
	if err != nil {
		return nil, err
	}
	validator, _, err := schemavalidation.NewSchemaValidator(&props)
	if err != nil {
		return nil, err
	}
	return &Definition{
		Kind:       schema.GroupVersionKind{Group: c.Spec.Group, Version: v.Name, Kind: c.Spec.Names.Kind},
		Namespaced: c.Spec.Scope == apiextensionsv1.NamespaceScoped,
		plural:     c.Spec.Names.Plural,
		structural: structural,
		schema:     validator,
		cel:        cel.NewValidator(structural, true, celconfig.PerCallLimit),
	}, nil
}

// Plural is the name of the resource, as in "elasticservices".
func (d *Definition) Plural() string { return d.plural }

// MoreRulesWait says that CEL was not asked, since the schema is broken.
const MoreRulesWait = "more rules wait until what stands above is fixed"

// Unknown lists the paths of fields that the kind does not have, as strict field validation does, and drops them.
func (d *Definition) Unknown(obj map[string]any) []string {
	paths := pruning.PruneWithOptions(obj, d.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	if _, _, inMeta, err := objectmeta.GetObjectMetaWithOptions(obj, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true}); err == nil {
		paths = append(paths, inMeta...)
	}
	return paths
}

// Create judges an object as the API server does when it is created, and fills its defaults in. The order of the steps, and that CEL is
// left out when the schema is broken, are the API server's.
func (d *Definition) Create(obj map[string]any) field.ErrorList {
	d.fill(obj)
	errs := metavalidation.ValidateObjectMetaAccessor(&unstructured.Unstructured{Object: obj}, d.Namespaced,
		metavalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	errs = append(errs, schemavalidation.ValidateCustomResource(nil, obj, d.schema)...)
	return d.rest(errs, obj, nil)
}

// Update judges a change of an object, transition rules included. Both objects are filled with defaults.
func (d *Definition) Update(obj, old map[string]any) field.ErrorList {
	d.fill(obj)
	d.fill(old)
	errs := schemavalidation.ValidateCustomResourceUpdate(nil, obj, old, d.schema)
	return d.rest(errs, obj, old)
}

func (d *Definition) fill(obj map[string]any) {
	defaulting.PruneNonNullableNullsWithoutDefaults(obj, d.structural)
	defaulting.Default(obj, d.structural)
}

func (d *Definition) rest(errs field.ErrorList, obj, old map[string]any) field.ErrorList {
	errs = append(errs, objectmeta.Validate(context.Background(), nil, obj, d.structural, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, d.structural, obj)...)
	if blocks(errs) {
		return append(errs, field.Invalid(nil, nil, MoreRulesWait))
	}
	// A nil map in an interface is not a nil interface: the CEL library would take it for an old object.
	var before any
	if old != nil {
		before = old
	}
	found, _ := d.cel.Validate(context.Background(), nil, d.structural, obj, before, celconfig.RuntimeCELCostBudget)
	return append(errs, found...)
}

// blocks reports whether the schema is broken in a way on which CEL cannot be run.
func blocks(errs field.ErrorList) bool {
	for _, e := range errs {
		switch e.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return true
		}
	}
	return false
}

{#- A model's schema is the one it names, as it stands, and the target's where it names none: dbt's own rule would put
    the target's before it, and every developer's target would then need schemas of its own. -#}
{% macro generate_schema_name(custom_schema_name, node) -%}
    {{ (custom_schema_name or target.schema) | trim }}
{%- endmacro %}

{#- Fails with every combination of the given columns that stands in more than one row. -#}
{% test unique_together(model, columns) %}
select {{ columns | join(', ') }}, count(*) as found
from {{ model }}
group by {{ columns | join(', ') }}
having count(*) > 1
{% endtest %}

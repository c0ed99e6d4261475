<!DOCTYPE html><html><head><title>Table</title></head><body><table>\\
% for row in rows:
<tr>\\
  % for cell in row:
<td>{{cell}}</td>\\
  % end
</tr>\\
% end
</table></body></html>\\
